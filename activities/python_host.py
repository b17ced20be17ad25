"""Runs the code of one attempt: input from stdin, report to descriptor 3."""
import inspect
import io
import json
import linecache
import math
import os
import sys
import traceback

CHANNEL = os.fdopen(os.dup(3), "wb")  # a dup is not inherited by programs main starts
os.close(3)
FRAMES = 10


def report(**fields):
    CHANNEL.write(json.dumps(fields, allow_nan=False).encode("ascii"))
    CHANNEL.flush()


def failed(name, message, trace="", final=False, unfit=False, error=None):
    retryable = getattr(error, "retryable", None)
    after = getattr(error, "retry_after", None)
    number = isinstance(after, (int, float)) and not isinstance(after, bool) and math.isfinite(after)
    report(
        type=name,
        message=message[:4000],
        traceback=trace[-8000:],
        retryable=retryable if isinstance(retryable, bool) else None,
        retry_after=float(after) if number else None,
        final=final or unfit,
        unfit=unfit,
    )


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


def run(code, filename, args):
    linecache.cache[filename] = (len(code), None, code.splitlines(True), filename)
    scope = {"__name__": "playbook", "__builtins__": __builtins__}
    try:
        compiled = compile(code, filename, "exec")
    except (SyntaxError, ValueError) as error:
        where = f" (line {error.lineno})" if getattr(error, "lineno", None) else ""
        what = getattr(error, "msg", None) or text_of(error)
        return failed(type(error).__name__, what + where, trace_of(error, filename), unfit=True)
    try:
        exec(compiled, scope)
        main = scope.get("main")
        if not callable(main):
            return failed("NameError", "the code defines no function main", unfit=True)
        if inspect.iscoroutinefunction(main):
            return failed("TypeError", "main is async, and nothing awaits it; write def main, and asyncio.run(...) in it", unfit=True)
        problem = misfit(main, args)
        if problem:
            return failed("TypeError", problem, unfit=True)
        result = main(**args)
    except BaseException as error:
        return failed(type(error).__name__, text_of(error), trace_of(error, filename), error=error)
    try:
        report(result=result)
    except BaseException as error:
        message = f"main returned what JSON cannot hold: {text_of(error)}"
        return failed(type(error).__name__, message, final=True)


def start():
    given = json.loads(sys.stdin.buffer.read())
    # The code reads nothing from stdin, and its prints arrive line by line.
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    sys.stdin = open(0, encoding="utf-8", closefd=False)
    sys.stdout = io.TextIOWrapper(sys.stdout.buffer, encoding="utf-8", errors="replace", line_buffering=True)
    sys.argv = [given["name"]]
    run(given["code"], f"<{given['name']}>", given["args"])


start()
