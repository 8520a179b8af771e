"""A tokenizer, a parser and an evaluator of arithmetic."""


class Token:
    def __init__(self, kind, value):
        self.kind = kind
        self.value = value


def tokenize(text):
    tokens = []
    i = 0
    while i < len(text):
        c = text[i]
        if c.isspace():
            i += 1
        elif c.isdigit():
            start = i
            while i < len(text) and (text[i].isdigit() or text[i] == "."):
                i += 1
            tokens.append(Token("number", float(text[start:i])))
        elif c.isalpha():
            start = i
            while i < len(text) and text[i].isalnum():
                i += 1
            tokens.append(Token("name", text[start:i]))
        else:
            tokens.append(Token("operator", c))
            i += 1
    return tokens


class Parser:
    def __init__(self, tokens, names):
        self.tokens = tokens
        self.names = names
        self.at = 0

    def peek(self):
        return self.tokens[self.at] if self.at < len(self.tokens) else Token("end", None)

    def take(self):
        token = self.peek()
        self.at += 1
        return token

    def expression(self):
        value = self.term()
        while self.peek().value in ("+", "-"):
            if self.take().value == "+":
                value += self.term()
            else:
                value -= self.term()
        return value

    def term(self):
        value = self.factor()
        while self.peek().value in ("*", "/"):
            if self.take().value == "*":
                value *= self.factor()
            else:
                value /= self.factor()
        return value

    def factor(self):
        token = self.take()
        if token.kind == "number":
            return token.value
        if token.kind == "name":
            return self.names[token.value]
        if token.value == "(":
            value = self.expression()
            self.take()
            return value
        if token.value == "-":
            return -self.factor()
        raise SyntaxError(token.value)


text = "(width + 3.5) * height / 2 - 4 * (11 - x1) + -7 * (2 + (3 - width) * height)"
names = {"width": 12.0, "height": 7.5, "x1": 2.0}
result = [Parser(tokenize(text), names).expression() for _ in range(120)][-1]
