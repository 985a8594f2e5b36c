"""Ask pip-audit about the locked versions; a database that cannot be reached is only a note."""

import subprocess
import sys

#: Words of pip-audit's last line where it got no answer.
UNREACHABLE = ("Connection", "Timeout", "Proxy", "HTTP", "ServiceError")


def main(pip_audit: str, lock: str) -> int:
    """Run pip-audit and return the exit code: 1 where a version has a known vulnerability."""
    told = subprocess.run(
        [pip_audit, "--requirement", lock, "--no-deps", "--disable-pip", "--progress-spinner=off"],
        capture_output=True,
        text=True,
    )
    unknown = told.stdout.count("could not be audited")
    lines = told.stderr.strip().splitlines() or [""]
    if told.returncode and any(word in lines[-1] for word in UNREACHABLE):
        print(f"Note: nothing was audited, the database could not be reached. {lines[-1]}")
        return 0
    print(told.stdout if unknown == 0 else lines[0])
    if unknown:
        print(f"Note: {unknown} versions could not be audited: the database does not answer.")
    return told.returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
