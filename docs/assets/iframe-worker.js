// Pages opened from the disk may start no workers. Here a hidden frame does the work of one.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.queue = [];
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.appendChild(frame);
      const inside = (this.inside = frame.contentWindow);
      const answer = (data) => {
        const event = new MessageEvent("message", { data });
        this.dispatchEvent(event);
        if (this.onmessage) this.onmessage(event);
      };
      inside.document.open();
      inside.document.write("<!doctype html><body></body>");
      inside.document.close();
      inside.postMessage = (data) => setTimeout(answer, 0, data);
      inside.importScripts = (...urls) => Promise.all(urls.map((each) => load(inside, each)));
      load(inside, url).then(() => {
        const waiting = this.queue;
        this.queue = null;
        waiting.forEach((data) => this.postMessage(data));
      });
    }

    postMessage(data) {
      if (this.queue) this.queue.push(data);
      else setTimeout(() => this.inside.dispatchEvent(new MessageEvent("message", { data })), 0);
    }

    terminate() {
      this.inside.frameElement.remove();
    }
  };
}

function load(frame, url) {
  return new Promise((done, failed) => {
    const script = frame.document.createElement("script");
    script.src = url;
    script.onload = done;
    script.onerror = () => failed(new Error(`cannot load ${url}`));
    frame.document.body.appendChild(script);
  });
}
