"""Text in pictures: where it is and what it says. Needs the extra `vision`."""

from jobtable.vision.text import Character, Point, Reading, Region, TextLine

__all__ = ["Character", "Point", "Reading", "Region", "TextLine"]
