"""A participant without any SDK: charges and refunds cards, each once. python3 worker.py [port]"""
import json, sys, threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

# In memory, as this is an example. In Postgres it is participant/sql/barrier.sql, from any language.
done, lock = {}, threading.Lock()


def carry_out(key, ask):
    transaction, direction, step = key.split("/", 2)
    forward, undo = f"{transaction}/forward/{step}", f"{transaction}/compensating/{step}"
    with lock:
        if direction == "forward" and undo in done:  # late: undone before it came
            return 409, {"success": False, "error": "it was compensated already"}
        if key in done:  # again: the answer that it got
            return 200, {"success": True, "result": done[key]}
        if direction == "compensating":
            if forward in done:
                print("refunded", ask["ActionResult"], flush=True)
            done[key] = None
        elif ask["payload"]["cents"] > 100_000:  # refused, and not remembered
            return 422, {"success": False, "error": "over the card's limit"}
        else:
            done[key] = {"receipt": len(done) + 1}
            print("charged", ask["payload"], flush=True)
        return 200, {"success": True, "result": done[key]}


class Worker(BaseHTTPRequestHandler):
    def do_POST(self):  # /local/execute and /local/compensate; the key says which
        ask = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        status, answer = carry_out(self.headers["Idempotency-Key"], ask)
        body = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1]) if sys.argv[1:] else 0), Worker)
print(f"http://127.0.0.1:{server.server_port}", flush=True)
server.serve_forever()
