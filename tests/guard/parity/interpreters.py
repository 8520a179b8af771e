#: recursive-descent-calculator
class Calc:
    def __init__(self, s): self._t, self._i = s.replace(" ", ""), 0
    def _peek(self): return self._t[self._i] if self._i < len(self._t) else ""
    def _next(self): self._i += 1; return self._t[self._i - 1]
    def expr(self):
        v = self.term()
        while self._peek() and self._peek() in "+-":
            v = v + self.term() if self._next() == "+" else v - self.term()
        return v
    def term(self):
        v = self.factor()
        while self._peek() and self._peek() in "*/":
            v = v * self.factor() if self._next() == "*" else v / self.factor()
        return v
    def factor(self):
        if self._peek() == "-": self._next(); return -self.factor()
        if self._peek() == "(":
            self._next(); v = self.expr()
            if self._next() != ")": raise SyntaxError("expected )")
            return v
        n = ""
        while self._peek() and (self._peek().isdigit() or self._peek() == "."): n += self._next()
        if not n: raise SyntaxError(f"unexpected {self._peek()!r} at {self._i}")
        return float(n) if "." in n else int(n)
for s in ("1 + 2 * 3", "(1+2)*3 - -4/2", "2*(3+4)*5", "1 + * 2"):
    try:
        print(s, "=", Calc(s).expr())
    except SyntaxError as e:
        print(s, "error", e)
#: shunting-yard-rpn
def rpn(tokens):
    prec, out, ops = {"+": 1, "-": 1, "*": 2, "/": 2, "^": 3}, [], []
    for t in tokens:
        if t in prec:
            while ops and ops[-1] != "(" and (prec[ops[-1]] > prec[t] or prec[ops[-1]] == prec[t] and t != "^"): out.append(ops.pop())
            ops.append(t)
        elif t == "(": ops.append(t)
        elif t == ")":
            while ops[-1] != "(": out.append(ops.pop())
            ops.pop()
        else: out.append(t)
    return out + ops[::-1]
def run(r):
    s = []
    f = {"+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b, "/": lambda a, b: a / b, "^": lambda a, b: a ** b}
    for t in r:
        if t in f:
            b, a = s.pop(), s.pop()
            s.append(f[t](a, b))
        else: s.append(float(t))
    return s[0]
r = rpn("3 + 4 * 2 / ( 1 - 5 ) ^ 2".split())
print(r, run(r))
#: lisp
#: needs: operator, math
import operator as op, math
def parse(s):
    def read(ts):
        t = ts.pop(0)
        if t == "(":
            l = []
            while ts[0] != ")": l.append(read(ts))
            ts.pop(0)
            return l
        try: return int(t)
        except ValueError: return t
    return read(s.replace("(", " ( ").replace(")", " ) ").split())
class Env(dict):
    def __init__(self, names=(), args=(), outer=None): self.update(zip(names, args)); self._outer = outer
    def find(self, n): return self if n in self else self._outer.find(n)
root = Env(); root.update({"+": op.add, "-": op.sub, "*": op.mul, "<": op.lt, "sqrt": math.sqrt})
def ev(x, e=root):
    if isinstance(x, str): return e.find(x)[x]
    if not isinstance(x, list): return x
    match x:
        case ["if", c, a, b]: return ev(a if ev(c, e) else b, e)
        case ["define", n, v]: e[n] = ev(v, e)
        case ["lambda", ps, body]: return lambda *a: ev(body, Env(ps, a, e))
        case [f, *args]: return ev(f, e)(*[ev(a, e) for a in args])
ev(parse("(define fact (lambda (n) (if (< n 2) 1 (* n (fact (- n 1))))))"))
ev(parse("(define adder (lambda (n) (lambda (x) (+ x n))))"))
print(ev(parse("(fact 20)")), ev(parse("((adder 3) 4)")), ev(parse("(sqrt 16)")))
#: brainf
def bf(src, data=b""):
    stack, jump = [], {}
    for i, c in enumerate(src):
        if c == "[": stack.append(i)
        elif c == "]": j = stack.pop(); jump[i], jump[j] = j, i
    tape, p, i, out, inp = [0] * 30, 0, 0, [], iter(data)
    while i < len(src):
        match src[i]:
            case ">": p += 1
            case "<": p -= 1
            case "+": tape[p] = tape[p] + 1 & 255
            case "-": tape[p] = tape[p] - 1 & 255
            case ".": out.append(chr(tape[p]))
            case ",": tape[p] = next(inp, 0)
            case "[" if not tape[p]: i = jump[i]
            case "]" if tape[p]: i = jump[i]
        i += 1
    return "".join(out)
print(bf("++++++++[>++++[>++>+++>+++>+<<<<-]>+>+>->>+[<]<-]>>.>---.+++++++..+++.>>."), bf(",[.,]", b"hi"))
#: stack-machine
class VM:
    def __init__(self, code): self._code, self._s, self._v, self._pc, self.out = code, [], {}, 0, []
    def run(self):
        while self._pc < len(self._code):
            op, *a = self._code[self._pc]
            self._pc += 1
            getattr(self, f"_op_{op}")(*a)
        return self.out
    def _op_push(self, v): self._s.append(v)
    def _op_add(self): self._s.append(self._s.pop() + self._s.pop())
    def _op_sub(self): b, a = self._s.pop(), self._s.pop(); self._s.append(a - b)
    def _op_store(self, n): self._v[n] = self._s.pop()
    def _op_load(self, n): self._s.append(self._v[n])
    def _op_print(self): self.out.append(self._s.pop())
    def _op_jnz(self, t):
        if self._s.pop(): self._pc = t
print(VM([("push", 3), ("store", "n"), ("load", "n"), ("print",), ("load", "n"), ("push", 1), ("sub",), ("store", "n"), ("load", "n"), ("jnz", 2)]).run())
try:
    VM([("nope",)]).run()
except AttributeError as e:
    print(e)
#: json-parser
def parse(s):
    i = 0
    def ws():
        nonlocal i
        while i < len(s) and s[i] in " \n\t": i += 1
    def value():
        nonlocal i
        ws()
        if s[i] == "{":
            i += 1; d = {}
            while True:
                ws()
                if s[i] == "}": i += 1; return d
                k = value(); ws(); i += 1; d[k] = value(); ws()
                if s[i] == ",": i += 1
        if s[i] == "[":
            i += 1; l = []
            while True:
                ws()
                if s[i] == "]": i += 1; return l
                l.append(value()); ws()
                if s[i] == ",": i += 1
        if s[i] == '"':
            j = s.index('"', i + 1); t = s[i + 1:j]; i = j + 1; return t
        for w, v in (("true", True), ("false", False), ("null", None)):
            if s.startswith(w, i): i += len(w); return v
        j = i
        while i < len(s) and s[i] in "-+.eE0123456789": i += 1
        return float(s[j:i]) if set(s[j:i]) & set(".eE") else int(s[j:i])
    return value()
print(parse('{"a": [1, -2.5e1, {"b": null}], "c": true, "d": "x y"}'))
#: template-engine
#: needs: re
import re
def render(t, **ctx):
    def loop(m):
        return "".join(render(m[3], **ctx, **{m[1]: v}) for v in ctx[m[2]])
    t = re.sub(r"\{% for (\w+) in (\w+) %\}(.*?)\{% end %\}", loop, t, flags=re.S)
    def look(m):
        v = ctx
        for part in m[1].strip().split("."):
            v = v[part] if isinstance(v, dict) else v
        return str(v)
    return re.sub(r"\{\{(.+?)\}\}", look, t)
print(render("{{ title }}: {% for u in users %}[{{ u.name }}]{% end %}", title="T", users=[{"name": "a"}, {"name": "b"}]))
#: regex-matcher-by-hand
def m(p, s):
    if not p: return True
    if p == "$": return not s
    if len(p) > 1 and p[1] == "*":
        return m(p[2:], s) or bool(s) and p[0] in (s[0], ".") and m(p, s[1:])
    return bool(s) and p[0] in (s[0], ".") and m(p[1:], s[1:])
print([m(p, s) for p, s in (("a*b$", "aaab"), ("a.c", "abcd"), ("x*$", "y"))])
#: ini-and-args-parsing
def ini(t):
    out, cur = {}, None
    for n, line in enumerate(t.splitlines(), 1):
        line = line.split("#")[0].strip()
        if not line: continue
        if line[0] == "[" and line[-1] == "]": cur = out.setdefault(line[1:-1], {})
        elif "=" in line and cur is not None:
            k, v = map(str.strip, line.split("=", 1)); cur[k] = int(v) if v.isdigit() else v
        else: raise ValueError(f"line {n}: {line!r}")
    return out
print(ini("[a]\nx = 1 # c\ny=two\n[b]\n"))
try:
    ini("oops")
except ValueError as e:
    print(e)
#: coroutine-based-tokenizer
def tokens():
    buf, out = "", []
    while True:
        c = yield out
        out = []
        if c is None or c.isspace():
            if buf: out.append(buf); buf = ""
        elif c in "()+": out = ([buf] if buf else []) + [c]; buf = ""
        else: buf += c
g = tokens(); next(g)
print([t for c in [*"foo (bar+1)", None] for t in g.send(c)])
