"""The system `receipts` and, for its older table, the system `legacy-receipts`."""

from jobtable.system import Command, Listing, NavigationEntry, Service, System

_HERE = "jobtable.systems.receipts"

SYSTEM = System(
    name="receipts",
    title="Receipts",
    order=50,
    entities=(f"{_HERE}.entities",),
    patterns=tuple(
        f"{_HERE}.{name}" for name in ("ocr", "analyses", "places", "model_batches", "validation", "labels")
    ),
    services=(Service(f"{_HERE}.ocr:OcrService", f"{_HERE}.ocr:OcrService.of", f"{_HERE}.remote:ServerOcr"),),
    api=tuple(f"{_HERE}.web.{name}" for name in ("api", "label_api", "validation_api", "batch_api", "place_api")),
    pages=(f"{_HERE}.web.pages",),
    web=f"{_HERE}.web",
    navigation=(NavigationEntry("/receipts", "Receipts", "receipts"),),
    icons={"receipts": '<path d="M6 3h12v18l-3-2-3 2-3-2-3 2z"/><path d="M9 8h6M9 12h6"/>'},
    inbox=f"{_HERE}.inbox_source:reviews",
    commands={"receipts": Command(f"{_HERE}.cli", "Add, list, show, delete and migrate receipts.")},
    listings={
        "image": Listing("receipts list", "images"),
        "receipt": Listing("receipts list", "receipts"),
        "receipt validation summary": Listing("receipts list", "receipts"),
    },
    demo=f"{_HERE}.demo.reading:PART",
)

LEGACY = System(
    name="legacy-receipts",
    title="Legacy receipts",
    order=51,
    tables=(f"{_HERE}.legacy.entities:legacy",),
    entities=(f"{_HERE}.legacy.entities",),
    patterns=(f"{_HERE}.legacy.service", f"{_HERE}.legacy.legacy_jobs"),
)
