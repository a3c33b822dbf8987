"""The bundled journey: a SQLite product catalogue becomes JSON documents, by rules. One module a stage.

The six classes are ordinary stages, and read any SQLite file; put your own in the place of one of them with
`JourneyTemplate.replacing`.
"""
