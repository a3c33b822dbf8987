"""The bundled journey: rules turn a SQLite product catalogue into JSON documents, with one module per stage.

The six classes are ordinary stages that read any SQLite file; replace one with `JourneyTemplate.replacing`.
"""
