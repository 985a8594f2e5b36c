// Requests to the server that sent the page. Addresses are relative, so that each has the token.

/** The server answered that it could not, and why. */
export class Refusal extends Error {}

/** The server did not answer. */
export class Gone extends Error {}

const lost = new Set();

/** Call `listener` whenever a request finds no server. */
export function onLost(listener) {
  lost.add(listener);
}

async function send(method, path, content) {
  const options = { method, cache: "no-store" };
  if (content !== undefined) {
    options.headers = { "content-type": "application/json" };
    options.body = JSON.stringify(content);
  }
  let response;
  let answer;
  try {
    response = await fetch(path, options);
    answer = await response.json();
  } catch {
    // No connection, or one that broke in the middle of an answer.
    for (const listener of lost) listener();
    throw new Gone("The server does not answer.");
  }
  if (!response.ok) {
    throw new Refusal(answer?.error ?? `The server answered with ${response.status}.`);
  }
  return answer;
}

const jobPath = (job, rest = "") => `api/jobs/${encodeURIComponent(job)}${rest}`;

export const api = {
  overview: () => send("GET", "api/overview"),
  instance: (index) => send("GET", `api/instances/${index}`),
  predict: (values, tag) => send("POST", "api/predict", { values, tag }),
  profile: (values, column) => send("POST", "api/profile", { values, column }),
  explain: (question) => send("POST", "api/explain", question),
  job: (job, after) => send("GET", jobPath(job, `?after=${after}`)),
  cancel: (job) => send("DELETE", jobPath(job)),
  why: (job, alternative) => send("POST", jobPath(job, "/why"), { alternative }),
  recipe: (job) => send("GET", jobPath(job, "/recipe")),
  fileAddress: (job, kind, alternative) => jobPath(job, `/${kind}?alternative=${alternative}`),
};

/** Whether the server is there, and which: asked without telling that it is lost. */
export async function askHealth() {
  try {
    const response = await fetch("api/health", { cache: "no-store" });
    return response.ok ? await response.json() : null;
  } catch {
    return null;
  }
}
