"""A cursor: reads tokens one after the other, and knows what to say when one is not what it should be."""

from __future__ import annotations

from stepwell.model.errors import Place, SqlSyntaxError
from stepwell.sql.statements import Name, Slice
from stepwell.sql.tokens import Token, TokenKind


class Cursor:
    """A place among the tokens of one statement."""

    def __init__(self, source: str, tokens: list[Token]) -> None:
        self.source = source
        self.tokens = tokens
        self.index = 0

    @property
    def token(self) -> Token | None:
        return self.tokens[self.index] if self.index < len(self.tokens) else None

    @property
    def end(self) -> int:
        """Where the statement's text ends."""
        return self.tokens[-1].end

    def peek(self, *words: str, ahead: int = 0) -> bool:
        """Whether one of these words comes next."""
        index = self.index + ahead
        return index < len(self.tokens) and self.tokens[index].says(*words)

    def peek_all(self, *words: str) -> bool:
        """Whether these words come next, in this order."""
        return all(self.peek(word, ahead=ahead) for ahead, word in enumerate(words))

    def accept(self, *words: str) -> bool:
        """Read these words, in this order, if all of them come next."""
        if not self.peek_all(*words):
            return False
        self.index += len(words)
        return True

    def expect(self, *words: str) -> None:
        """Read these words, in this order."""
        for word in words:
            if not self.accept(word):
                raise self.unexpected(word)

    def next(self, what: str) -> Token:
        """The next token, whatever it is; `what` says in an error what it should have been."""
        token = self.token
        if token is None:
            raise self.unexpected(what)
        self.index += 1
        return token

    def unexpected(self, what: str) -> SqlSyntaxError:
        """The error that `what` should have come next."""
        token = self.token
        if token is None:
            return SqlSyntaxError(
                f"expected {what} at the end of the statement", place=Place(self.source, max(0, self.end - 1), self.end)
            )
        return SqlSyntaxError(
            f'expected {what} instead of "{self.source[token.start : token.end]}"',
            place=Place(self.source, token.start, token.end),
        )

    def identifier(self, what: str) -> tuple[str, Slice]:
        """A name of one part."""
        token = self.token
        if token is None or token.kind not in (TokenKind.WORD, TokenKind.NAME):
            raise self.unexpected(what)
        self.index += 1
        return token.text, Slice(self.source, token.start, token.end)

    def name(self, what: str) -> Name:
        """A name, perhaps with its namespace before a point."""
        first, where = self.identifier(what)
        parts, end = [first], where.end
        while self.peek("."):
            self.index += 1
            part, place = self.identifier(what)
            parts.append(part)
            end = place.end
        return Name(tuple(parts), Slice(self.source, where.start, end))

    def column_list(self, what: str) -> tuple[Slice, ...]:
        """Names in parentheses, with commas between them."""
        self.expect("(")
        found = [self.identifier(what)[1]]
        while self.accept(","):
            found.append(self.identifier(what)[1])
        self.expect(")")
        return tuple(found)

    def slice_until(self, *words: str, what: str) -> Slice:
        """The text up to one of these words outside all parentheses, or up to the end; CASE … END counts as such."""
        first = self.token
        if first is None or first.says(*words):
            raise self.unexpected(what)
        depth = 0
        end = first.end
        while (token := self.token) is not None:
            if depth == 0 and token.says(*words):
                break
            if token.says("(", "[", "CASE"):
                depth += 1
            elif token.says(")", "]") or (token.says("END") and depth):
                if depth == 0:
                    break
                depth -= 1
            end = token.end
            self.index += 1
        if self.index and self.tokens[self.index - 1].start < first.start:
            raise self.unexpected(what)
        return Slice(self.source, first.start, end)

    def rest(self, what: str) -> Slice:
        """All that is left of the statement."""
        if self.token is None:
            raise self.unexpected(what)
        found = Slice(self.source, self.token.start, self.end)
        self.index = len(self.tokens)
        return found

    def finish(self) -> None:
        """Make sure that nothing is left."""
        if self.token is not None:
            raise self.unexpected("the end of the statement")
