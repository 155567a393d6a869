"""Nexmark: the stream of an auction house, and its queries as views.

People join, sellers open auctions, bidders bid: 1 person to 3 auctions to 46 bids, a few auctions and people drawing
most of them, event times that advance by about 10 ms and are sometimes out of order or equal. What Nexmark does not
have is added here: bids that come late or twice, and corrections of what is there already. `stream` makes batches of
all that, the same ones for the same seed, and `after` says what the tables hold once a batch has been applied.

Of the known queries q0 to q22 none is left out, but some are not what they are elsewhere, since a view has to equal its
query at any time, and neither a clock nor a sink is part of a query:

- q5, q7, q8 and q12 have windows of event time, written with the arithmetic of their time column or with `window()`,
  and such a window never closes: a late row corrects it. q12 is by processing time elsewhere.
- q6 takes an auction for closed when a bid of the stream is later than its end.
- q10 is the query alone, without the files that it is written to.
- q11 finds the sessions of a bidder with window functions: how far a group of `session_window()` reaches depends on
  other rows, and the rules for groups take it for a value of each row.
- q13 joins a table that does not change, for the file on the side.
- q14 counts a letter with `replace`, for a function of the user's own.
- q2 takes every 11th auction, not every 123rd: the streams of tests are short.
- q2, q4, q6 and q9 have % and JOIN in place of `mod()` and the comma, which 'incremental strict' refuses.
- Where an order would leave ties (q6, q9, q18, q19), the other columns follow in it, so that there is one answer.
"""

from __future__ import annotations

import dataclasses
import itertools
import random
import string
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from stepwell.model.types import literal

TABLES = {
    "person": (
        "id BIGINT PRIMARY KEY, name STRING, email_address STRING, credit_card STRING, city STRING, state STRING,"
        " date_time TIMESTAMP, extra STRING"
    ),
    "auction": (
        "id BIGINT PRIMARY KEY, item_name STRING, description STRING, initial_bid BIGINT, reserve BIGINT,"
        " date_time TIMESTAMP, expires TIMESTAMP, seller BIGINT, category BIGINT, extra STRING"
    ),
    "bid": (
        "auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, date_time TIMESTAMP, extra STRING"
    ),
    "side_input": "key BIGINT PRIMARY KEY, value STRING",
}

SIDE_INPUT = tuple((key, f"value {key}") for key in range(8))
"""The rows of `side_input`: two remainders of 10 have no partner."""

QUERIES = {
    "q0": "SELECT auction, bidder, price, date_time, extra FROM bid",
    "q1": "SELECT auction, bidder, 0.908 * price AS price, date_time, extra FROM bid",
    "q2": "SELECT auction, price FROM bid WHERE auction % 11 = 0",
    "q3": """
        SELECT p.name, p.city, p.state, a.id FROM auction AS a JOIN person AS p ON a.seller = p.id
        WHERE a.category = 10 AND p.state IN ('OR', 'ID', 'CA')""",
    "q4": """
        SELECT q.category, avg(q.final) AS price
        FROM (SELECT max(b.price) AS final, a.category FROM auction AS a JOIN bid AS b ON a.id = b.auction
              WHERE b.date_time BETWEEN a.date_time AND a.expires
              GROUP BY a.id, a.category) AS q
        GROUP BY q.category""",
    "q5": """
        SELECT auction, starts_at, bids
        FROM (SELECT auction, starts_at, bids, rank() OVER (PARTITION BY starts_at ORDER BY bids DESC) AS place
              FROM (SELECT auction, starts_at, count(*) AS bids
                    FROM (SELECT auction, explode(sequence(unix_seconds(date_time) DIV 2 * 2 - 8,
                                                           unix_seconds(date_time) DIV 2 * 2, 2)) AS starts_at
                          FROM bid) AS hops
                    GROUP BY auction, starts_at) AS counts) AS places
        WHERE place = 1""",
    "q6": """
        SELECT q.seller, q.id, q.expires,
               avg(q.final) OVER (PARTITION BY q.seller ORDER BY q.expires, q.id
                                  ROWS BETWEEN 10 PRECEDING AND CURRENT ROW) AS price
        FROM (SELECT max(b.price) AS final, a.seller, a.id, a.expires
              FROM auction AS a JOIN bid AS b ON a.id = b.auction
              WHERE b.date_time BETWEEN a.date_time AND a.expires
              GROUP BY a.id, a.seller, a.expires) AS q
        WHERE q.expires < (SELECT max(date_time) FROM bid)""",
    "q7": """
        SELECT b.auction, b.price, b.bidder, b.date_time, b.extra
        FROM bid AS b
        JOIN (SELECT max(price) AS price, timestamp_seconds(unix_seconds(date_time) DIV 10 * 10) AS starts_at FROM bid
              GROUP BY timestamp_seconds(unix_seconds(date_time) DIV 10 * 10)) AS top
          ON b.price = top.price
        WHERE b.date_time >= top.starts_at AND b.date_time < top.starts_at + INTERVAL '10' SECOND""",
    "q8": """
        SELECT p.id, p.name, p.starts_at
        FROM (SELECT id, name, unix_seconds(date_time) DIV 10 * 10 AS starts_at FROM person) AS p
        JOIN (SELECT DISTINCT seller, unix_seconds(date_time) DIV 10 * 10 AS starts_at FROM auction) AS a
          ON p.id = a.seller AND p.starts_at = a.starts_at""",
    "q9": """
        SELECT id, item_name, description, initial_bid, reserve, date_time, expires, seller, category, extra,
               bidder, price, bid_at, bid_extra
        FROM (SELECT a.*, b.bidder, b.price, b.date_time AS bid_at, b.extra AS bid_extra,
                     row_number() OVER (PARTITION BY a.id
                                        ORDER BY b.price DESC, b.date_time, b.bidder, b.extra) AS place
              FROM auction AS a JOIN bid AS b ON a.id = b.auction
              WHERE b.date_time BETWEEN a.date_time AND a.expires) AS places
        WHERE place <= 1""",
    "q10": """
        SELECT auction, bidder, price, date_time, extra, date_format(date_time, 'yyyy-MM-dd') AS day,
               date_format(date_time, 'HH:mm') AS minute
        FROM bid""",
    "q11": """
        SELECT bidder, count(*) AS bids, min(date_time) AS starts_at, max(date_time) AS ends_at
        FROM (SELECT bidder, date_time, sum(opens) OVER (PARTITION BY bidder ORDER BY date_time) AS session
              FROM (SELECT bidder, date_time,
                           CASE WHEN date_time < lag(date_time) OVER (PARTITION BY bidder ORDER BY date_time)
                                                 + INTERVAL '10' SECOND
                                THEN 0 ELSE 1 END AS opens
                    FROM bid) AS gaps) AS sessions
        GROUP BY bidder, session""",
    "q12": """
        SELECT bidder, count(*) AS bids, window(date_time, '10 seconds').start AS starts_at,
               window(date_time, '10 seconds').end AS ends_at
        FROM bid GROUP BY bidder, window(date_time, '10 seconds')""",
    "q13": """
        SELECT b.auction, b.bidder, b.price, b.date_time, s.value
        FROM bid AS b JOIN side_input AS s ON b.auction % 10 = s.key""",
    "q14": """
        SELECT auction, bidder, 0.908 * price AS price,
               CASE WHEN hour(date_time) >= 8 AND hour(date_time) <= 18 THEN 'day'
                    WHEN hour(date_time) <= 6 OR hour(date_time) >= 20 THEN 'night'
                    ELSE 'other' END AS time_of_day,
               date_time, extra, length(extra) - length(replace(extra, 'c', '')) AS letters
        FROM bid WHERE 0.908 * price > 10000 AND 0.908 * price < 50000000""",
    "q15": """
        SELECT date_format(date_time, 'yyyy-MM-dd') AS day, count(*) AS bids,
               count(*) FILTER (WHERE price < 10000) AS low_bids,
               count(*) FILTER (WHERE price >= 10000 AND price < 1000000) AS middle_bids,
               count(*) FILTER (WHERE price >= 1000000) AS high_bids,
               count(DISTINCT bidder) AS bidders,
               count(DISTINCT bidder) FILTER (WHERE price < 10000) AS low_bidders,
               count(DISTINCT bidder) FILTER (WHERE price >= 10000 AND price < 1000000) AS middle_bidders,
               count(DISTINCT bidder) FILTER (WHERE price >= 1000000) AS high_bidders,
               count(DISTINCT auction) AS auctions,
               count(DISTINCT auction) FILTER (WHERE price < 10000) AS low_auctions,
               count(DISTINCT auction) FILTER (WHERE price >= 10000 AND price < 1000000) AS middle_auctions,
               count(DISTINCT auction) FILTER (WHERE price >= 1000000) AS high_auctions
        FROM bid GROUP BY date_format(date_time, 'yyyy-MM-dd')""",
    "q16": """
        SELECT channel, date_format(date_time, 'yyyy-MM-dd') AS day, max(date_format(date_time, 'HH:mm')) AS minute,
               count(*) AS bids,
               count(*) FILTER (WHERE price < 10000) AS low_bids,
               count(*) FILTER (WHERE price >= 1000000) AS high_bids,
               count(DISTINCT bidder) AS bidders,
               count(DISTINCT bidder) FILTER (WHERE price >= 1000000) AS high_bidders,
               count(DISTINCT auction) AS auctions,
               count(DISTINCT auction) FILTER (WHERE price >= 1000000) AS high_auctions
        FROM bid GROUP BY channel, date_format(date_time, 'yyyy-MM-dd')""",
    "q17": """
        SELECT auction, date_format(date_time, 'yyyy-MM-dd') AS day, count(*) AS bids,
               count(*) FILTER (WHERE price < 10000) AS low_bids,
               count(*) FILTER (WHERE price >= 10000 AND price < 1000000) AS middle_bids,
               count(*) FILTER (WHERE price >= 1000000) AS high_bids,
               min(price) AS lowest, max(price) AS highest, avg(price) AS average, sum(price) AS total
        FROM bid GROUP BY auction, date_format(date_time, 'yyyy-MM-dd')""",
    "q18": """
        SELECT auction, bidder, price, channel, url, date_time, extra
        FROM (SELECT *, row_number() OVER (PARTITION BY bidder, auction
                                           ORDER BY date_time DESC, price DESC, channel, url, extra) AS place
              FROM bid) AS places
        WHERE place <= 1""",
    "q19": """
        SELECT *
        FROM (SELECT *, row_number() OVER (PARTITION BY auction
                                           ORDER BY price DESC, date_time, bidder, channel, url, extra) AS place
              FROM bid) AS places
        WHERE place <= 10""",
    "q20": """
        SELECT b.auction, b.bidder, b.price, b.channel, b.url, b.date_time AS bid_at, a.item_name, a.initial_bid,
               a.reserve, a.date_time, a.expires, a.seller, a.category
        FROM bid AS b JOIN auction AS a ON b.auction = a.id WHERE a.category = 10""",
    "q21": """
        SELECT auction, bidder, price, channel,
               CASE WHEN lower(channel) = 'apple' THEN '0' WHEN lower(channel) = 'google' THEN '1'
                    WHEN lower(channel) = 'facebook' THEN '2' WHEN lower(channel) = 'baidu' THEN '3'
                    ELSE regexp_extract(url, '(&|^)channel_id=([^&]*)', 2) END AS channel_id
        FROM bid
        WHERE regexp_extract(url, '(&|^)channel_id=([^&]*)', 2) <> ''
           OR lower(channel) IN ('apple', 'google', 'facebook', 'baidu')""",
    "q22": """
        SELECT auction, bidder, price, channel, split_part(url, '/', 4) AS dir1, split_part(url, '/', 5) AS dir2,
               split_part(url, '/', 6) AS dir3
        FROM bid""",
}

# -- events -----------------------------------------------------------------------------------------------------------

FieldValue = int | str | datetime


@dataclass(frozen=True, slots=True)
class Person:
    id: int
    name: str
    email_address: str
    credit_card: str
    city: str
    state: str
    date_time: datetime
    extra: str


@dataclass(frozen=True, slots=True)
class Auction:
    id: int
    item_name: str
    description: str
    initial_bid: int
    reserve: int
    date_time: datetime
    expires: datetime
    seller: int
    category: int
    extra: str


@dataclass(frozen=True, slots=True)
class Bid:
    """A bid has no key: two equal ones are two."""

    auction: int
    bidder: int
    price: int
    channel: str
    url: str
    date_time: datetime
    extra: str


Event = Person | Auction | Bid

Tables = Mapping[str, Sequence[Event]]
"""What the tables of events hold."""

EMPTY: Tables = {"person": (), "auction": (), "bid": ()}


@dataclass(frozen=True, slots=True)
class Correction:
    """Those rows of `table` that have all of these values get new ones; without new ones they go."""

    table: str
    where: Mapping[str, FieldValue]
    new: Mapping[str, FieldValue] | None = None

    @property
    def sql(self) -> str:
        condition = " AND ".join(f"{name} = {literal(value)}" for name, value in self.where.items())
        if self.new is None:
            return f"DELETE FROM {self.table} WHERE {condition}"
        changed = ", ".join(f"{name} = {literal(value)}" for name, value in self.new.items())
        return f"UPDATE {self.table} SET {changed} WHERE {condition}"

    def touches(self, row: Event) -> bool:
        return all(getattr(row, name) == value for name, value in self.where.items())

    def applied(self, rows: Sequence[Event]) -> list[Event]:
        if self.new is None:
            return [row for row in rows if not self.touches(row)]
        values: dict[str, FieldValue] = dict(self.new)
        # The fields are checked when the row is made, and by every test that compares it with the database's.
        return [dataclasses.replace(row, **values) if self.touches(row) else row for row in rows]  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class Batch:
    """What one transaction does: its rows by table, then its corrections. A person or an auction that is there already
    is replaced."""

    rows: Tables
    corrections: tuple[Correction, ...] = ()


def after(tables: Tables, batch: Batch) -> dict[str, list[Event]]:
    """The tables once a batch has been applied to them."""
    held: dict[str, list[Event]] = {}
    for table, rows in tables.items():
        new = batch.rows[table]
        replaced = {row.id for row in new if not isinstance(row, Bid)}
        held[table] = [*(row for row in rows if isinstance(row, Bid) or row.id not in replaced), *new]
    for correction in batch.corrections:
        held[correction.table] = correction.applied(held[correction.table])
    return held


# -- the generator ----------------------------------------------------------------------------------------------------

START = datetime(2024, 12, 31, 23, 59, tzinfo=UTC)
"""A minute before midnight: streams of more than that have bids of two days."""

GAP = timedelta(milliseconds=10)

FIRST_ID = 1000
CATEGORIES = range(10, 15)
IN_FLIGHT = 20
"""How many auctions are open at a time, about."""

HOT_EVERY = 10
"""Of so many auctions or people in a row the first is the hot one."""

HOT_AUCTION, HOT_PERSON, HOT_CHANNEL = 0.5, 0.75, 0.5
"""How often it is the hot one."""

LATE, TWICE = 0.04, 0.02
"""How many bids come a batch later, and how many a second time."""

JITTER = 5
"""By how many whole gaps an event may be early or late, so that some are out of order and some at the same time."""

CITIES = {
    "AZ": ("Phoenix",),
    "CA": ("Los Angeles", "San Francisco", "Palo Alto"),
    "ID": ("Boise",),
    "OR": ("Portland", "Bend", "Redmond"),
    "WA": ("Seattle", "Kent"),
    "WY": ("Cheyenne",),
}
FIRST_NAMES = ("Peter", "Paul", "Luke", "John", "Saul", "Vicky", "Kate", "Julie", "Sarah", "Deiter", "Walter")
LAST_NAMES = ("Shultz", "Abrams", "Spencer", "White", "Bartels", "Walton", "Smith", "Jones", "Noris")
HOT_CHANNELS = ("Google", "Facebook", "Baidu", "Apple")
COLD_CHANNELS = 20


class Generator:
    """Events without end. Of 50 the first is a person, three are auctions and the rest are bids."""

    def __init__(self, seed: int, gap: timedelta = GAP) -> None:
        self.random = random.Random(seed)
        self._gap = gap
        self._events = 0
        self._people = 0
        self._auctions = 0
        self._time = START

    def __next__(self) -> Event:
        number = self._events
        self._events += 1
        self._time = START + (number + self.random.randint(-JITTER, JITTER)) * self._gap
        match number % 50:
            case 0:
                return self._person()
            case 1 | 2 | 3:
                return self._auction()
        return self._bid()

    def __iter__(self) -> Iterator[Event]:
        return self

    def price(self) -> int:
        """From 100 to 100 million, each power of ten as often as any other."""
        return round(10 ** (2 + self.random.random() * 6))

    def place(self) -> tuple[str, str]:
        """A city and its state."""
        state = self.random.choice(tuple(CITIES))
        return self.random.choice(CITIES[state]), state

    def _person(self) -> Person:
        self._people += 1
        first, last = self.random.choice(FIRST_NAMES), self.random.choice(LAST_NAMES)
        city, state = self.place()
        return Person(
            id=FIRST_ID + self._people - 1,
            name=f"{first} {last}",
            email_address=f"{self._letters(7)}@{self._letters(5)}.com",
            credit_card=" ".join(f"{self.random.randrange(10_000):04}" for _ in range(4)),
            city=city,
            state=state,
            date_time=self._time,
            extra=self._letters(12),
        )

    def _auction(self) -> Auction:
        self._auctions += 1
        initial = self.price()
        events_open = 1 + self.random.randrange(2 * IN_FLIGHT * 50 // 3)
        return Auction(
            id=FIRST_ID + self._auctions - 1,
            item_name=self._letters(8),
            description=self._letters(16),
            initial_bid=initial,
            reserve=initial + self.price(),
            date_time=self._time,
            expires=self._time + events_open * self._gap,
            seller=self._hot_or_any(self._people, HOT_PERSON),
            category=self.random.choice(CATEGORIES),
            extra=self._letters(10),
        )

    def _bid(self) -> Bid:
        url = "https://www.nexmark.com/" + "/".join(self._letters(3) for _ in range(3)) + "/item.htm?query=1"
        if self.random.random() < HOT_CHANNEL:
            channel = self.random.choice(HOT_CHANNELS)
        else:
            number = self.random.randrange(COLD_CHANNELS)
            channel = f"channel-{number}"
            url += f"&channel_id={number * 7919 % 1000}" if number else ""
        return Bid(
            auction=self._hot_or_any(self._auctions, HOT_AUCTION),
            bidder=self._hot_or_any(self._people, HOT_PERSON),
            price=self.price(),
            channel=channel,
            url=url,
            date_time=self._time,
            extra=self._letters(8),
        )

    def _hot_or_any(self, count: int, hot: float) -> int:
        """One of the newest of `count` ids."""
        if self.random.random() < hot:
            return FIRST_ID + (count - 1) // HOT_EVERY * HOT_EVERY
        return FIRST_ID + self.random.randrange(max(0, count - 100), count)

    def _letters(self, count: int) -> str:
        return "".join(self.random.choices(string.ascii_lowercase, k=count))


def stream(seed: int, sizes: Sequence[tuple[int, int]], gap: timedelta = GAP) -> Iterator[Batch]:
    """A batch for each pair of how many events and how many corrections; late bids are those of the batch before."""
    events = Generator(seed, gap)
    tables = EMPTY
    late: list[Event] = []
    for size, count in sizes:
        rows: dict[str, list[Event]] = {"person": [], "auction": [], "bid": late}
        late = []
        for event in itertools.islice(events, size):
            if isinstance(event, Bid) and events.random.random() < LATE:
                late.append(event)
            else:
                rows[type(event).__name__.lower()].append(event)
        rows["bid"] += [bid for bid in rows["bid"] if events.random.random() < TWICE]
        if count and tables["auction"]:
            rows["auction"].append(_sent_again(events, tables["auction"]))
        batch = Batch(rows)
        for number in range(count):
            # what is corrected may have come with this very batch, or have been corrected in it
            batch = Batch(rows, (*batch.corrections, _correction(events, after(tables, batch), number)))
        tables = after(tables, batch)
        yield batch


def _sent_again(events: Generator, auctions: Sequence[Event]) -> Auction:
    """An auction with a higher reserve and perhaps in another category, as feeds send it: the whole row once more."""
    auction = events.random.choice(auctions)
    assert isinstance(auction, Auction)
    reserve, category = auction.reserve + events.price(), events.random.choice(CATEGORIES)
    return dataclasses.replace(auction, reserve=reserve, category=category)


def _correction(events: Generator, tables: Tables, number: int) -> Correction:
    """One of each kind in turn, of a row that is there."""
    bid, auction, person = (events.random.choice(tables[table]) for table in ("bid", "auction", "person"))
    assert isinstance(bid, Bid)
    assert isinstance(auction, Auction)
    assert isinstance(person, Person)
    this_bid: dict[str, FieldValue] = {"auction": bid.auction, "bidder": bid.bidder, "date_time": bid.date_time}
    match number % 7:
        case 0:  # withdrawn
            return Correction("bid", this_bid)
        case 1:  # closed early
            middle = auction.date_time + (auction.expires - auction.date_time) / 2
            return Correction("auction", {"id": auction.id}, {"expires": middle})
        case 2:  # raised
            return Correction("bid", this_bid, {"price": bid.price + events.price()})
        case 3:  # cheaper for all
            return Correction("auction", {"seller": auction.seller}, {"reserve": auction.initial_bid})
        case 4:  # moved
            city, state = events.place()
            return Correction("person", {"id": person.id}, {"city": city, "state": state})
        case 5:  # every bid of one bidder for one auction
            return Correction("bid", {"auction": bid.auction, "bidder": bid.bidder})
    # taken off, and its bids stay
    return Correction("auction", {"id": auction.id})
