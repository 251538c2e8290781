"""The synchronous SDK, in the shape of the asynchronous one.

Scenarios are written once, against `azure.cosmos.aio`. This module lets the same text drive
`azure.cosmos`: a call becomes something that may be awaited or iterated with `async for`, and the
synchronous method behind it runs, blocking, at that moment. It adds no behaviour of its own, except
that the synchronous `query_items` must be told that a query may cross partitions.
"""

from azure.cosmos import ContainerProxy, CosmosClient, DatabaseProxy, ScriptsProxy, UserProxy

NAME = "sync"

_PROXIES = (CosmosClient, DatabaseProxy, ContainerProxy, ScriptsProxy, UserProxy)


def connect(endpoint, credential, **options):
    return _Object(lambda: CosmosClient(endpoint, credential=credential, **options))


class _Object:
    """A client, database, container, user or scripts object."""

    def __init__(self, make):
        # A client opens its connection when it is made; the asynchronous one when it is entered.
        self._make = make
        self._made = None

    @property
    def target(self):
        if self._made is None:
            self._made = self._make()
        return self._made

    async def __aenter__(self):
        self.target.__enter__()
        return self

    async def __aexit__(self, *details):
        if self._made is not None:
            self._made.__exit__(*details)

    def __getattr__(self, attribute):
        value = getattr(self.target, attribute)
        if not callable(value):
            return _wrap(value)

        def call(*args, **kwargs):
            if attribute == "query_items" and not {"partition_key", "feed_range"} & kwargs.keys():
                kwargs["enable_cross_partition_query"] = True
            arguments = [_unwrap(argument) for argument in args]
            answer = _Answer(lambda: value(*arguments, **kwargs))
            return answer.now() if attribute.endswith("_client") else answer

        return call


class _Answer:
    """A call that has not been made yet."""

    def __init__(self, call):
        self._call = call
        self._result = None

    def now(self):
        if self._result is None:
            self._result = _wrap(self._call())
        return self._result

    def __await__(self):
        return self.now()
        yield  # makes this a generator, which is what `await` wants

    async def __aiter__(self):
        for element in self.now():
            yield element

    def by_page(self, continuation_token=None):
        return _Pages(self.now().by_page(continuation_token))

    def get_response_headers(self):
        return self.now().get_response_headers()


class _Pages:
    def __init__(self, pages):
        self._pages = pages

    def __aiter__(self):
        return self

    async def __anext__(self):
        try:
            return _Page(next(self._pages))
        except StopIteration:
            raise StopAsyncIteration from None

    @property
    def continuation_token(self):
        return self._pages.continuation_token


class _Page:
    def __init__(self, items):
        self._items = items

    async def __aiter__(self):
        for item in self._items:
            yield item


def _wrap(value):
    if isinstance(value, _PROXIES):
        return _Object(lambda: value)
    if isinstance(value, tuple):
        return tuple(_wrap(element) for element in value)
    return value


def _unwrap(value):
    return value.target if isinstance(value, _Object) else value
