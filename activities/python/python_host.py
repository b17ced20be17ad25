"""Runs the code of one attempt: input from stdin, report to descriptor 3.

The code runs in a child. This process outlives it, ends whatever the code has
started, and ends then as the child did. It does the same when descriptor 4 is
closed at its other end: nobody waits for the attempt any more, or the worker is
dead.
"""
import fcntl
import inspect
import io
import json
import linecache
import math
import os
import random
import select
import signal
import sys
import time
import traceback

REPORT, LIFELINE = 3, 4
FRAMES = 10
END = 1.0  # seconds that what is left may take to die


class Digits(float):
    """A number of more digits than a float has, or with zeros at its end, such as 19.90. str() gives its digits, so
    Decimal(str(x)) is exact; whatever is computed with it is a float."""

    met = False

    def __new__(cls, text):
        Digits.met = True
        self = super().__new__(cls, text)
        self.digits = str(text)
        return self

    def __repr__(self):
        return self.digits


def number(text):
    value = float(text)
    return value if repr(value) == text else Digits(text)


class Encoder(json.JSONEncoder):
    """Writes numbers with their digits. It is slower than the one of the library, which writes no others than float and int."""

    def default(self, value):
        return Digits(value) if is_decimal(value) else super().default(value)

    def iterencode(self, value, _one_shot=False):
        return json.encoder._make_iterencode(
            {}, self.default, json.encoder.encode_basestring_ascii, None, written, ": ", ", ", False, False, _one_shot
        )(value, 0)


def is_decimal(value):
    decimal = sys.modules.get("decimal")
    return decimal is not None and isinstance(value, decimal.Decimal) and value.is_finite()


def written(value):
    if isinstance(value, Digits):
        return value.digits
    if not math.isfinite(value):
        raise ValueError(f"Out of range float values are not JSON compliant: {value!r}")
    return float.__repr__(value)


def encoded(fields):
    if not Digits.met:
        try:
            return json.dumps(fields, allow_nan=False)
        except TypeError:
            pass  # it may hold a Decimal
    return json.dumps(fields, cls=Encoder)


def channel(nonce):
    """The function that reports. Where it writes is nowhere that code comes by:
    a number of chance, which programs that main starts do not inherit. What it
    writes begins with a word that only the worker knows."""
    low = random.SystemRandom().randrange(256, 768)
    try:
        at = fcntl.fcntl(REPORT, fcntl.F_DUPFD_CLOEXEC, low)
    except OSError:  # fewer descriptors than that
        at = os.dup(REPORT)
    os.close(REPORT)

    def report(**fields):
        text = nonce + encoded(fields) + "\n"
        with os.fdopen(os.dup(at), "wb") as file:
            file.write(text.encode("ascii"))

    return report


def failed(report, name, message, trace="", final=False, unfit=False, error=None):
    retryable = getattr(error, "retryable", None)
    report(
        type=name,
        message=message[:4000],
        traceback=trace[-8000:],
        retryable=retryable if isinstance(retryable, bool) else None,
        retry_after=wait_of(error),
        final=final or unfit,
        unfit=unfit,
    )


def wait_of(error):
    """How long an exception says to wait, as text; None where it does not."""
    try:
        after = getattr(error, "retry_after", None)
        if hasattr(after, "total_seconds"):
            after = after.total_seconds()
        elif hasattr(after, "isoformat"):
            after = after.isoformat()
        return None if after is None else str(after)[:200]
    except Exception:
        return None


def text_of(error):
    try:
        return str(error)
    except Exception:
        return "(the exception has no text)"


def trace_of(error, filename):
    """The last frames from the author's code on, without those of this file."""
    frames = traceback.extract_tb(error.__traceback__)
    first = next((i for i, f in enumerate(frames) if f.filename == filename), len(frames))
    frames = frames[first:][-FRAMES:]
    lines = traceback.format_list(frames) + traceback.format_exception_only(type(error), error)
    return "".join(lines)


def misfit(main, args):
    """Says why args cannot be the keyword arguments of main, "" if they can."""
    try:
        signature = inspect.signature(main)
    except (TypeError, ValueError):
        return ""  # written in C; the call itself will tell
    known, needed, takes_any = [], [], False
    for p in signature.parameters.values():
        if p.kind is p.VAR_KEYWORD:
            takes_any = True
        elif p.kind is p.POSITIONAL_ONLY:
            return f"main takes {p.name!r} by position only; remove the / from its parameters"
        elif p.kind is not p.VAR_POSITIONAL:
            known.append(p.name)
            if p.default is p.empty:
                needed.append(p.name)
    missing = [n for n in needed if n not in args]
    unknown = [] if takes_any else sorted(n for n in args if n not in known)
    parts = []
    if unknown:
        takes = ", ".join(known) or "nothing"
        parts.append(f"main has no parameter {', '.join(map(repr, unknown))}; it takes {takes}")
    if missing:
        gives = ", ".join(sorted(args)) or "nothing"
        parts.append(f"main needs {', '.join(map(repr, missing))}; args gives {gives}")
    return "; ".join(parts)


def run(report, code, filename, args):
    linecache.cache[filename] = (len(code), None, code.splitlines(True), filename)
    scope = {"__name__": "playbook", "__builtins__": __builtins__}
    try:
        compiled = compile(code, filename, "exec")
    except (SyntaxError, ValueError) as error:
        where = f" (line {error.lineno})" if getattr(error, "lineno", None) else ""
        what = getattr(error, "msg", None) or text_of(error)
        return failed(report, type(error).__name__, what + where, trace_of(error, filename), unfit=True)
    try:
        exec(compiled, scope)
        main = scope.get("main")
        if not callable(main):
            return failed(report, "NameError", "the code defines no function main", unfit=True)
        if inspect.iscoroutinefunction(main):
            return failed(report, "TypeError", "main is async, and nothing awaits it; write def main, and asyncio.run(...) in it", unfit=True)
        problem = misfit(main, args)
        if problem:
            return failed(report, "TypeError", problem, unfit=True)
        result = main(**args)
    except BaseException as error:
        return failed(report, type(error).__name__, text_of(error), trace_of(error, filename), error=error)
    try:
        report(result=result)
    except BaseException as error:
        message = f"main returned what JSON cannot hold: {text_of(error)}"
        return failed(report, type(error).__name__, message, final=True)


def prctl(option, value):
    """Asks Linux; elsewhere nothing."""
    try:
        import ctypes

        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)
    except Exception:
        pass


PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36


def children():
    """Processes whose parent is this one, which orphans of the code are too."""
    mine = str(os.getpid())
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc") if os.path.isdir("/proc/self") else ()):
        try:
            with open(f"/proc/{pid}/stat", "rb") as file:
                if file.read().rpartition(b") ")[2].split()[1] == mine.encode():
                    found.append(int(pid))
        except OSError:
            pass  # it has ended
    return found


def end(code, ended):
    """Kills what is left, and what that leaves, until there is no child."""
    late = time.monotonic() + END
    while time.monotonic() < late:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            break
        if pid == code:
            ended = status
        if pid == 0:
            for child in {*children(), *([code] if ended is None else [])}:
                try:
                    os.kill(child, signal.SIGKILL)
                except OSError:
                    pass
            time.sleep(0.001)
    return ended


def supervise(code, wakeup):
    """Waits for the end of the code, or until nobody wants it any more."""
    ended = None
    while ended is None:
        ready, _, _ = select.select([wakeup, LIFELINE], [], [])
        if LIFELINE in ready:
            break
        os.read(wakeup, 4096)
        try:
            while ended is None:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    break
                if pid == code:
                    ended = status
        except ChildProcessError:
            break
    ended = end(code, ended)
    if ended is None:
        os._exit(1)
    if os.WIFSIGNALED(ended):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        number = os.WTERMSIG(ended)
        if number != signal.SIGKILL:
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    os._exit(os.WEXITSTATUS(ended))


def fork():
    """Goes on in a child. The parent supervises it and never returns."""
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    parent = os.getpid()
    wakeup, told = os.pipe()
    os.set_blocking(told, False)
    signal.set_wakeup_fd(told, warn_on_full_buffer=False)
    before = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    before[signal.SIGCHLD] = signal.signal(signal.SIGCHLD, lambda *_: None)
    code = os.fork()
    if code:
        os.close(REPORT)
        supervise(code, wakeup)
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
    signal.set_wakeup_fd(-1)
    for number, handler in before.items():
        signal.signal(number, handler)
    for descriptor in (wakeup, told, LIFELINE):
        os.close(descriptor)


def start():
    given = json.loads(sys.stdin.buffer.read(), parse_float=number)
    fork()
    report = channel(given.pop("nonce"))
    # The code reads nothing from stdin, and its prints arrive line by line.
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    sys.stdin = open(0, encoding="utf-8", closefd=False)
    sys.stdout = io.TextIOWrapper(sys.stdout.buffer, encoding="utf-8", errors="replace", line_buffering=True)
    sys.argv = [given["name"]]
    run(report, given["code"], f"<{given['name']}>", given["args"])


start()
