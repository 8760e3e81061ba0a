"""Answers that a test gives to a server's questions."""

from __future__ import annotations

from collections import deque
from typing import Any, final

from longshore.client.handlers import ElicitQuestion
from longshore.registry.function import check_callback


@final
class Answers:
    """Answers to a server's questions, one for each, in order; for `on_elicit=`.

    Each is what `on_elicit` may return: True (yes, with the defaults of the form; a single box is ticked), a dict or a
    single value (what is filled in), False (no), None (neither); or a function of the question that returns one of
    these.
    """

    def __init__(self, *answers: Any) -> None:
        self.asked: list[ElicitQuestion] = []
        """Every question that came."""
        self._left: deque[Any] = deque()
        self._unanswered: list[str] = []
        self.add(*answers)

    def add(self, *answers: Any) -> None:
        """Append answers."""
        for answer in answers:
            if callable(answer):
                check_callback(answer, "answer", "question")
        self._left.extend(answers)

    def __call__(self, question: ElicitQuestion) -> Any:
        self.asked.append(question)
        if not self._left:
            self._unanswered.append(question.message)
            raise AssertionError(f"the server asks {question.message!r}, and there is no answer left; add one")
        answer = self._left.popleft()
        return answer(question) if callable(answer) else answer

    def verify(self) -> None:
        """Raise AssertionError if a question had no answer, which a server may hide from its caller, or vice versa."""
        if self._unanswered:
            asked = ", ".join(repr(message) for message in self._unanswered)
            raise AssertionError(
                f"the server asked {asked}, and there was no answer left; give one by mcp_answers.add(…)"
            )
        if self._left:
            left = ", ".join(repr(answer)[:100] for answer in self._left)
            raise AssertionError(f"the server never asked for what is left of the answers: {left}")
