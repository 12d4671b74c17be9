"""The graders in use, each as two functions: what is the answer in a text, and are two answers the same.

Each is loaded from the file of the package that carries it, so that nothing else of these packages is imported.
"""

import importlib.util
import sys
import types
from dataclasses import dataclass
from importlib.metadata import files
from typing import Callable, Optional


@dataclass(frozen=True)
class Grader:
    name: str
    same: Callable[[str, str], bool]  # prediction, gold
    answer: Callable[[str], Optional[str]]  # None where a text holds no answer


def _load(package: str, path: str, name: str):
    """A module from one file of an installed package."""
    file = next(file for file in files(package) if str(file) == path)
    is_package = path.endswith("__init__.py")
    search = [str(file.locate().parent)] if is_package else None
    spec = importlib.util.spec_from_file_location(name, file.locate(), submodule_search_locations=search)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _stub(name: str, **attributes):
    """A stand-in for a module that is imported but plays no part in grading."""
    module = types.ModuleType(name)
    vars(module).update(attributes)
    sys.modules[name] = module


def bare(text: str) -> str:
    """An answer without the delimiters and the box around it, which graders of strings take literally."""
    text = text.strip().rstrip(".")
    for open_, close in (("$$", "$$"), ("$", "$"), (r"\[", r"\]"), (r"\(", r"\)"), (r"\boxed{", "}")):
        if text.startswith(open_) and text.endswith(close) and len(text) >= len(open_) + len(close):
            text = text[len(open_) : len(text) - len(close)].strip()
    return text


def on_bare(same: Callable[[str, str], bool]) -> Callable[[str, str], bool]:
    return lambda pred, gold: same(bare(pred), bare(gold))


def math_verify() -> Grader:
    from math_verify import parse, verify

    def delimited(text: str) -> str:
        marked = any(mark in text for mark in ("$", r"\boxed", r"\[", r"\("))
        return text if marked else f"${text}$"

    def same(pred: str, gold: str) -> bool:
        return verify(parse(delimited(gold)), parse(delimited(pred)))

    # Its parser searches the text itself.
    return Grader("Math-Verify 0.9.0", same, lambda text: text)


def prm800k() -> Grader:
    _stub("verl.utils.py_functional", timeout_limit=lambda **_: lambda function: function)
    module = _load("verl", "verl/utils/reward_score/prime_math/__init__.py", "prime_math")
    return Grader("PRM800K (verl 0.9.1)", on_bare(module.grade_answer), lambda text: module.match_answer(text)[1])


def qwen() -> Grader:
    module = _load("evalscope", "evalscope/metrics/math_parser.py", "qwen_math")
    clean = module.strip_answer_string

    def same(pred: str, gold: str) -> bool:
        return module.math_equal(clean(pred), clean(gold))

    return Grader("Qwen2.5-Math (evalscope 1.0.0)", on_bare(same), module.extract_answer)


def _last_box(module) -> Callable[[str], Optional[str]]:
    def answer(text: str) -> Optional[str]:
        box = module.last_boxed_only_string(text)
        return None if box is None else module.remove_boxed(box)

    return answer


def hendrycks() -> Grader:
    _stub("datasets", Dataset=object)
    module = _load("lm-eval", "lm_eval/tasks/hendrycks_math/utils.py", "hendrycks_math")
    return Grader("Hendrycks (lm-eval 0.4.13)", on_bare(module.is_equiv), _last_box(module))


def minerva() -> Grader:
    module = _load("lm-eval", "lm_eval/tasks/minerva_math/utils.py", "minerva_math")
    clean = module.normalize_final_answer

    def same(pred: str, gold: str) -> bool:
        return clean(pred) == clean(gold) or module.is_equiv(clean(pred), clean(gold))

    return Grader("Minerva (lm-eval 0.4.13)", on_bare(same), _last_box(module))


ALL = [math_verify, prm800k, qwen, hendrycks, minerva]
