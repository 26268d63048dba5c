"""Logs of a service.

Logs are lines of text or of JSON on stderr. Every answered request is one line at level info, by
the logger `shortlist.access`."""

import json
import logging
import time

TEXT = "%(asctime)s %(name)s %(levelname)s %(message)s"
access = logging.getLogger("shortlist.access")


class JsonLines(logging.Formatter):
    """One JSON object per record; what belongs to a request has fields of its own."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as one line."""
        moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        line: dict[str, object] = {
            "time": f"{moment}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **getattr(record, "request", {}),
        }
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


def start_logs(level: str, style: str) -> None:
    """Log to stderr from this level on, as "text" or "json"."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines() if style == "json" else logging.Formatter(TEXT))
    logging.basicConfig(handlers=[handler], level=level.upper())


def log_request(
    address: str, token: str, method: str, path: str, status: int, seconds: float
) -> None:
    """Log an answered request. The path is that of its route: names may be private."""
    if access.isEnabledFor(logging.INFO):
        fields = {"address": address, "token": token, "method": method, "path": path}
        more = {**fields, "status": status, "seconds": round(seconds, 6)}
        text = f"{address} {token or '-'} {method} {path} {status} {1000 * seconds:.1f} ms"
        access.info("%s", text, extra={"request": more})
