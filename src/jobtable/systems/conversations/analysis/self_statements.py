"""Statements about oneself, such as "I am under 30": they describe the participants, and are no opinions."""

from __future__ import annotations

import re

_BEGINNINGS = """
i am|i'm|i was|i identify as|i have been|i have lived|i live|i reside|i work|i grew up|i was born|i come from
my ethnicity|my gender|my age|my pronouns|my religion|my nationality|my sex|my occupation|my profession|my household
ich bin|ich wohne|ich lebe|ich arbeite|ich komme aus|ich identifiziere mich|mein alter|mein geschlecht|mein beruf
meine religion|meine herkunft|meine nationalität
soy|tengo|vivo|trabajo|nací|me identifico|mi edad|mi género|mi etnia|mi religión|mi nacionalidad|mi profesión
je suis|j'ai|j'habite|je vis|je travaille|je m'identifie|mon âge|mon genre|mon métier|mon origine
ma religion|ma nationalité|ma profession
"""
_SUBJECTS = r"""
years? (?:old|of age)|aged?|under \d+|over \d+|between \d+ and \d+|born|m[ae]n|wom[ae]n|male|female|non-?binary
trans(?:gender)?|gender|descent|ethnicity|ethnic|heritage|ancestry|citizen|resident|nationality|religio\w+|christian
muslim|jewish|hindu|buddhist|sikh|atheist|city|town|village|rural|urban|suburb\w*|region|student|retired|employed
unemployed|self-employed|farmer|teacher|nurse|parent|married|single|disab\w+|white|black|asian|arab|hispanic|latin[oax]
indigenous|māori|pacific
jahre? alt|unter \d+|über \d+|zwischen \d+ und \d+|mann|frau|männlich|weiblich|divers|geschlecht|herkunft
staatsbürger\w*|stadt|dorf|kleinstadt|großstadt|student\w*|rentner\w*|angestellt\w*|selbständig\w*|arbeitslos\w*
religion|nationalität|alter|beruf
años|hombre|mujer|género|etnia|ascendencia|ciudadan\w+|residente|ciudad|pueblo|estudiante|jubilad\w+|desemplead\w+
religión|nacionalidad|edad|profesión
ans|homme|femme|genre|origine|citoyen\w*|résident\w*|ville|campagne|étudiant\w*|retraité\w*|chômeur|nationalité|âge
profession
"""
_OPINIONS = r"""
should|must|need|want|think|believe|feel|support|oppose|because|against|worried|concerned|happy|afraid
soll\w*|muss|müss\w*|finde|glaube|weil|debe\w*|creo|porque|doit|devrai\w*|pense|crois|parce
"""
_LONGEST = 120
"""Characters: a longer text has an opinion in it."""


def _any_of(words: str) -> str:
    return "|".join(words.strip().splitlines())


_BEGINS = re.compile(rf"^\W*(?:{_any_of(_BEGINNINGS)})\b")
_IS_ABOUT = re.compile(rf"\b(?:{_any_of(_SUBJECTS)})\b")
_HAS_OPINION = re.compile(rf"\b(?:{_any_of(_OPINIONS)})\b")


def is_about_self(text: str) -> bool:
    """Return whether a comment in English, German, Spanish or French says who its author is, and no more."""
    said = text.strip().lower().replace("\u2019", "'")
    if len(said) > _LONGEST or _HAS_OPINION.search(said):
        return False
    return bool(_BEGINS.search(said) and _IS_ABOUT.search(said))
