"""Parameters of the labs on positions that are added to the scores."""

from typing import Annotated

from pydantic import Field

from model.labs.parameters.base import Parameters


class AlibiLab(Parameters):
    """The linear biases of Press et al. 2022."""

    heads: Annotated[int, Field(ge=1, le=128, description="heads of a layer")] = 8
    head: Annotated[int, Field(ge=0, le=127, description="the head that is drawn, counted from 0")] = 2
    length: Annotated[int, Field(ge=1, le=2048, description="tokens of the text")] = 64


class T5Buckets(Parameters):
    """The buckets of distances of Raffel et al. 2020."""

    buckets: Annotated[int, Field(ge=4, le=256, description="how many buckets there are in all")] = 32
    max_distance: Annotated[
        int, Field(ge=2, le=4096, description="from this distance on, all distances share the last bucket")
    ] = 128
    both_ways: Annotated[
        bool, Field(description="an encoder's buckets, half of them for keys ahead; else a decoder's")
    ] = True
    length: Annotated[int, Field(ge=1, le=2048, description="tokens of the text")] = 160
    distance: Annotated[
        int, Field(ge=-2047, le=2047, description="the key's position less the query's, whose bucket is told")
    ] = -20
