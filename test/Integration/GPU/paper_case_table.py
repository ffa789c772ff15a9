#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""More cases of flex_cases.py: masks and scores of papers, each as its formula says it,
without a thought for how it is compiled."""

import math
import random

from flex_case_table import case, causal_mask


def grid_of(length):
    """(rows, columns) of the largest image that a sequence holds; what is over is one more row."""
    columns = 2 ** (int(math.log2(length)) // 2)
    return -(-length // columns), columns


def spans_of(torch, device, length, count, seed):
    """The number of its span for each position; spans are of random lengths, in order."""
    starts = sorted(random.Random(seed).sample(range(1, length), min(count, length) - 1))
    ids = torch.zeros(length, dtype=torch.int32)
    for start in starts:
        ids[start:] += 1
    return ids.to(device)


# ---------------------------------------------------------------------------
# Masks
# ---------------------------------------------------------------------------


@case()
def transfusion(torch, device, heads, length):
    """Transfusion (Zhou et al., 2024): causal, but an image sees itself whole."""
    image = spans_of(torch, device, length, 24, seed=1)
    image = torch.where(image % 3 == 0, -1, image)
    return None, lambda: lambda b, h, q, k: (q >= k) | ((image[q] == image[k]) & (image[q] >= 0)), []


@case()
def tree(torch, device, heads, length):
    """SpecInfer (Miao et al., 2023): a token sees its ancestors; a walk in depth first order."""
    generator, leave, path = random.Random(2), [0] * length, []
    for position in range(length):
        while len(path) > 1 and generator.random() < 0.01:
            leave[path.pop()] = position
        path.append(position)
    for position in path:
        leave[position] = length
    leave = torch.tensor(leave, dtype=torch.int32, device=device)
    return None, lambda: lambda b, h, q, k: (k <= q) & (q < leave[k]), []


@case()
def block_diffusion(torch, device, heads, length):
    """Block diffusion (Arriola et al., 2025): noised tokens, then clean ones, in blocks of 16."""
    n, size = length // 2, 16

    def mask(b, h, q, k):
        clean_q, clean_k = q >= n, k >= n
        block_q = torch.where(clean_q, (q - n) // size, q // size)
        block_k = torch.where(clean_k, (k - n) // size, k // size)
        diagonal = (block_q == block_k) & (clean_q == clean_k)
        offset = (block_q > block_k) & clean_k & ~clean_q
        return diagonal | offset | ((block_q >= block_k) & clean_k & clean_q)
    return None, lambda: mask, []


@case()
def frame_causal(torch, device, heads, length):
    """Video models: a frame of 240 tokens sees itself and the frames before."""
    return None, lambda: lambda b, h, q, k: q // 240 >= k // 240, []


@case()
def next_scale(torch, device, heads, length):
    """VAR (Tian et al., 2024): a token sees its own scale and the coarser ones."""
    sizes, at = [1, 4, 9, 16, 25, 36, 64, 100, 169, 256], 0
    level = torch.zeros(length, dtype=torch.int32)
    for number, size in enumerate(sizes):
        level[at * length // sum(sizes):] = number
        at += size
    level = level.to(device)
    return None, lambda: lambda b, h, q, k: level[q] >= level[k], []


@case()
def shifted_windows(torch, device, heads, length):
    """Swin (Liu et al., 2021): windows of 16 x 16 of an image in row order, shifted by 8."""
    _, columns = grid_of(length)
    across = (columns + 15) // 16 + 1

    def window_of(position):
        return (position // columns + 8) // 16 * across + (position % columns + 8) // 16
    return None, lambda: lambda b, h, q, k: window_of(q) == window_of(k), []


@case()
def sliding_tiles(torch, device, heads, length):
    """Sliding tile attention (Zhang et al., 2025): tiles of 128 tokens of a video of 4 x 4 tiles a frame."""
    def mask(b, h, q, k):
        q, k = q // 128, k // 128
        near = (q // 16 - k // 16).abs() <= 1
        return near & ((q // 4 % 4 - k // 4 % 4).abs() <= 1) & ((q % 4 - k % 4).abs() <= 1)
    return None, lambda: mask, []


@case()
def neighbourhood_3d(torch, device, heads, length):
    """Neighbourhood attention (Hassani et al., 2023) of a video with frames of 16 x 32."""
    def mask(b, h, q, k):
        near = (q // 512 - k // 512).abs() <= 2
        return near & ((q // 32 % 16 - k // 32 % 16).abs() <= 3) & ((q % 32 - k % 32).abs() <= 5)
    return None, lambda: mask, []


@case()
def radial(torch, device, heads, length):
    """Radial attention (Li et al., 2025): what a frame sees of another halves with their distance."""
    def mask(b, h, q, k):
        frames, places = (q // 512 - k // 512).abs(), (q % 512 - k % 512).abs()
        reach = torch.where(frames < 2, 512, torch.where(frames < 4, 256, torch.where(frames < 8, 128, 64)))
        return places < reach
    return None, lambda: mask, []


@case(per="head")
def vertical_slash(torch, device, heads, length):
    """MInference (Jiang et al., 2024): a few keys and a few distances of each head."""
    generator = torch.Generator().manual_seed(3)
    keys = (torch.rand(heads, length, generator=generator) < 0.01).to(device)
    distances = torch.rand(heads, length, generator=generator) < 0.005
    distances[:, :64] = True
    distances = distances.to(device)
    return None, lambda: lambda b, h, q, k: (q >= k) & (keys[h, k] | distances[h, (q - k).clamp(min=0)]), []


@case(per="head")
def selected_blocks(torch, device, heads, length):
    """NSA, MoBA (Yuan et al., Lu et al., 2025): blocks of 64 keys chosen for 64 queries, and the last 512."""
    blocks = -(-length // 64)
    chosen = (torch.rand(heads, blocks, blocks, generator=torch.Generator().manual_seed(4)) < 0.1).to(device)
    return None, lambda: lambda b, h, q, k: (q >= k) & (chosen[h, q // 64, k // 64] | (q - k < 512)), []


@case(per="head")
def local_and_global_heads(torch, device, heads, length):
    """Half of the heads see the last 512 tokens, half of them all."""
    return None, lambda: lambda b, h, q, k: (q >= k) & ((h >= heads // 2) | (q - k < 512)), []


@case()
def dilated_segments(torch, device, heads, length):
    """LongNet (Ding et al., 2023): every second token of a segment of 1024, every eighth of 4096."""
    def mask(b, h, q, k):
        near = (q // 1024 == k // 1024) & (q % 2 == k % 2)
        return (q >= k) & (near | ((q // 4096 == k // 4096) & (q % 8 == k % 8)))
    return None, lambda: mask, []


@case()
def log_sparse(torch, device, heads, length):
    """LogSparse (Li et al., 2019): distances that are powers of two, and the last 64 keys."""
    def mask(b, h, q, k):
        distance = q - k
        return (distance >= 0) & ((distance < 64) | ((distance & (distance - 1)) == 0))
    return None, lambda: mask, []


@case()
def axial(torch, device, heads, length):
    """Criss-cross attention (Huang et al., 2019): the same row or column of an image."""
    _, columns = grid_of(length)
    return None, lambda: lambda b, h, q, k: (q // columns == k // columns) | (q % columns == k % columns), []


@case()
def any_width(torch, device, heads, length):
    """Neighbourhood attention (Hassani et al., 2023) of an image whose width is a tensor's number."""
    width = torch.tensor(grid_of(length)[1], device=device, dtype=torch.int32)

    def mask(b, h, q, k):
        return ((q // width - k // width).abs() <= 6) & ((q % width - k % width).abs() <= 6)
    return None, lambda: mask, []


@case()
def any_chunk(torch, device, heads, length):
    """Llama 4: causal, within chunks of a tensor's number, of int64."""
    size = torch.tensor(length // 16, device=device)
    return None, lambda: lambda b, h, q, k: (q >= k) & (q // size == k // size), []


@case(per="head")
def dilated_heads(torch, device, heads, length):
    """Dilated neighbourhoods (Hassani and Shi, 2022): windows with steps of one to four, by the head."""
    def mask(b, h, q, k):
        step = 1 + h % 4
        return (q >= k) & ((q - k) % step == 0) & (q - k < length // 8 * step)
    return None, lambda: mask, []


@case()
def chunked(torch, device, heads, length):
    """Llama 4: causal, within chunks."""
    size = max(length // 5, 1)
    return None, lambda: lambda b, h, q, k: (q >= k) & (q // size == k // size), []


@case(per="batch")
def padding(torch, device, heads, length):
    """Encoders: keys up to the length of a sequence."""
    lengths = torch.tensor([length * 5 // 9, length - 3], dtype=torch.int32, device=device)
    return None, lambda: lambda b, h, q, k: k < lengths[b], []


@case(per="batch")
def jagged(torch, device, heads, length):
    """Padding on both sides of scores: rows beyond the length have no keys."""
    lengths = torch.tensor([length * 4 // 7, length // 3], dtype=torch.int32, device=device)
    return None, lambda: lambda b, h, q, k: (q < lengths[b]) & (k < lengths[b]) & (q >= k), []


@case()
def packed_both_ways(torch, device, heads, length):
    """Packed encoders: a document sees itself whole."""
    ids = spans_of(torch, device, length, 10, seed=5)
    return None, lambda: lambda b, h, q, k: ids[q] == ids[k], []


@case()
def documents_in_window(torch, device, heads, length):
    ids, reach = spans_of(torch, device, length, 8, seed=6), max(length // 16, 1)
    return None, lambda: lambda b, h, q, k: (q >= k) & (q - k < reach) & (ids[q] == ids[k]), []


@case()
def shared_question(torch, device, heads, length):
    """Hydragen (Juravsky et al., 2024), training on many answers: an answer sees the question and itself."""
    shared = length // 4
    ids = spans_of(torch, device, length, 9, seed=7)
    return None, lambda: lambda b, h, q, k: (q >= k) & ((k < shared) | (ids[q] == ids[k])), []


@case()
def last_image(torch, device, heads, length):
    """Flamingo (Alayrac et al., 2022): a token of text sees the image before it, in 64 keys each."""
    last = spans_of(torch, device, length, max(length // 64, 1), seed=8)
    return None, lambda: lambda b, h, q, k: k // 64 == last[q], []


@case()
def striped(torch, device, heads, length):
    """Striped attention (Brandon et al., 2023): causal, in the order of another layout."""
    position = (torch.arange(length) % 4 * -(-length // 4) + torch.arange(length) // 4).to(torch.int32).to(device)
    return None, lambda: lambda b, h, q, k: position[q] >= position[k], []


@case()
def buckets(torch, device, heads, length):
    """Reformer (Kitaev et al., 2020): causal, within buckets that are in no order."""
    bucket = torch.randint(0, 16, (length,), generator=torch.Generator().manual_seed(9)).to(torch.int32).to(device)
    return None, lambda: lambda b, h, q, k: (q >= k) & (bucket[q] == bucket[k]), []


@case(per="head")
def gated_blocks(torch, device, heads, length):
    """MoBA (Lu et al., 2025): each query has the blocks of 512 keys that its gate chose, and its own."""
    chosen = torch.rand(heads, length, -(-length // 512), generator=torch.Generator().manual_seed(12)) < 0.15
    chosen = chosen.to(device)
    return None, lambda: lambda b, h, q, k: (q >= k) & (chosen[h, q, k // 512] | (q // 512 == k // 512)), []


@case()
def random_and_near(torch, device, heads, length):
    """BigBird (Zaheer et al., 2020): blocks of 64 at random, the neighbours, the first and the last one."""
    blocks = -(-length // 64)
    drawn = (torch.rand(blocks, blocks, generator=torch.Generator().manual_seed(13)) < 0.025).to(device)

    def mask(b, h, q, k):
        row, column = q // 64, k // 64
        edges = (row == 0) | (column == 0) | (row == blocks - 1) | (column == blocks - 1)
        return edges | ((row - column).abs() <= 1) | drawn[row, column]
    return None, lambda: mask, []


@case()
def frames_in_window(torch, device, heads, length):
    """Video models: a frame of 600 tokens sees the two before it, itself, and the first."""
    def mask(b, h, q, k):
        frames = q // 600 - k // 600
        return ((frames >= 0) & (frames <= 2)) | (k < 600)
    return None, lambda: mask, []


@case()
def chosen_frames(torch, device, heads, length):
    """Video models: pairs of frames of 200 tokens, of which some are chosen, and each frame itself."""
    frames = -(-length // 200)
    chosen = torch.rand(frames, frames, generator=torch.Generator().manual_seed(14)) < 0.1
    chosen = (chosen | torch.eye(frames, dtype=torch.bool)).to(device)
    return None, lambda: lambda b, h, q, k: chosen[q // 200, k // 200], []


@case()
def sliding_cubes(torch, device, heads, length):
    """Sliding tile attention (Zhang et al., 2025): cubes of 384 tokens, three by three by three around the own."""
    def mask(b, h, q, k):
        row, column = q // 384, k // 384
        near = ((row // 9 - column // 9).abs() <= 1) & ((row // 3 % 3 - column // 3 % 3).abs() <= 1)
        return near & ((row % 3 - column % 3).abs() <= 1)
    return None, lambda: mask, []


@case()
def any_order(torch, device, heads, length):
    """XLNet (Yang et al., 2019): causal in an order that is drawn."""
    order = torch.randperm(length, generator=torch.Generator().manual_seed(15)).to(torch.int32).to(device)
    return None, lambda: lambda b, h, q, k: order[q] >= order[k], []


@case()
def bits(torch, device, heads, length):
    """A mask of any form, 32 keys in one number."""
    words = torch.randint(-2**31, 2**31, (length, -(-length // 32)), generator=torch.Generator().manual_seed(16))
    words = words.to(torch.int32).to(device)
    return None, lambda: lambda b, h, q, k: (words[q, k // 32] >> (k % 32)) & 1 != 0, []


@case()
def any_mask(torch, device, heads, length):
    """A mask of any form, a truth value for each pair."""
    seen = (torch.rand(length, length, generator=torch.Generator().manual_seed(17)) < 0.5).to(device)
    return None, lambda: lambda b, h, q, k: seen[q, k], []


# ---------------------------------------------------------------------------
# Scores
# ---------------------------------------------------------------------------


@case()
def forgetting(torch, device, heads, length):
    """Forgetting Transformer (Lin et al., 2025): sums of the logarithms of forget gates."""
    gates = torch.nn.functional.logsigmoid(torch.randn(heads, length, device=device) + 4).cumsum(1)
    return lambda f: lambda s, b, h, q, k: s + f[h, q] - f[h, k], lambda: causal_mask, [gates]


@case()
def logarithmic_bias(torch, device, heads, length):
    """KERPLE (Chi et al., 2022)."""
    scale, rate = torch.rand(heads, device=device) + 0.5, torch.rand(heads, device=device) + 0.5

    def make(scale, rate):
        return lambda s, b, h, q, k: s - scale[h] * torch.log(1 + rate[h] * (q - k).abs())
    return make, lambda: causal_mask, [scale, rate]


@case()
def image_bias(torch, device, heads, length):
    """Swin (Liu et al., 2021): a table by the distance in rows and in columns of an image."""
    rows, columns = grid_of(length)
    table = torch.randn(heads, 2 * rows - 1, 2 * columns - 1, device=device)

    def make(table):
        return lambda s, b, h, q, k: s + table[h, q // columns - k // columns + rows - 1,
                                               q % columns - k % columns + columns - 1]
    return make, None, [table]


@case()
def window_bias(torch, device, heads, length):
    """Swin (Liu et al., 2021): windows of 7 x 7 tokens behind one another, a table by the distance in one."""
    table = torch.randn(heads, 13, 13, device=device)

    def make(table):
        def score(s, b, h, q, k):
            row, column = q % 49, k % 49
            return s + table[h, row // 7 - column // 7 + 6, row % 7 - column % 7 + 6]
        return score
    return make, lambda: lambda b, h, q, k: q // 49 == k // 49, [table]


@case()
def video_bias(torch, device, heads, length):
    """Video Swin (Liu et al., 2022): a table by the distance in frames of 16 x 16, rows and columns."""
    frames = -(-length // 256)
    table = torch.randn(heads, 2 * frames - 1, 31, 31, device=device)

    def make(table):
        return lambda s, b, h, q, k: s + table[h, q // 256 - k // 256 + frames - 1,
                                               q // 16 % 16 - k // 16 % 16 + 15, q % 16 - k % 16 + 15]
    return make, None, [table]


@case()
def graph_bias(torch, device, heads, length):
    """Graphormer (Ying et al., 2021): a table by the length of the shortest path of two nodes."""
    paths = torch.randint(0, 20, (length, length), generator=torch.Generator().manual_seed(10))
    paths, table = paths.to(torch.int32).to(device), torch.randn(heads, 20, device=device)
    return lambda table: lambda s, b, h, q, k: s + table[h, paths[q, k]], None, [table]


@case(per="batch")
def segment_bias(torch, device, heads, length):
    """Segments (Dai et al., 2019; He et al., 2021): a table by the kinds of two tokens."""
    kinds = torch.randint(0, 4, (2, length), generator=torch.Generator().manual_seed(18)).to(torch.int32).to(device)
    table = torch.randn(heads, 4, 4, device=device)
    return lambda table: lambda s, b, h, q, k: s + table[h, kinds[b, q], kinds[b, k]], None, [table]


@case(per="batch")
def place_bias(torch, device, heads, length):
    """LayoutLMv2 (Xu et al., 2021): a table by how far apart two words are on a page."""
    place = torch.randint(0, 1000, (2, length), generator=torch.Generator().manual_seed(19)).to(torch.int32).to(device)
    table = torch.randn(heads, 65, device=device)

    def make(table):
        return lambda s, b, h, q, k: s + table[h, torch.clamp((place[b, q] - place[b, k]) // 16, -32, 32) + 32]
    return make, None, [table]


@case(per="batch")
def decomposed_bias(torch, device, heads, length):
    """MViTv2 (Li et al., 2022), SAM: a number of each query for the row and one for the column of a key."""
    rows, columns = grid_of(length)
    of_rows, of_columns = (torch.randn(2, heads, length, n, device=device) for n in (rows, columns))

    def make(of_rows, of_columns):
        return lambda s, b, h, q, k: s + of_rows[b, h, q, k // columns] + of_columns[b, h, q, k % columns]
    return make, None, [of_rows, of_columns]


@case()
def span_of_query(torch, device, heads, length):
    """Adaptive span (Sukhbaatar et al., 2019): each token says how many keys it sees, in int64."""
    spans = torch.randint(16, 1024, (length,), generator=torch.Generator().manual_seed(3)).to(device)
    return None, lambda: lambda b, h, q, k: (q >= k) & (q - k <= spans[q]), []


@case()
def two_slopes(torch, device, heads, length):
    """ALiBi of an encoder: a slope of each head for what is before, and one for what is behind."""
    before, behind = (torch.rand(heads, device=device) * 0.05 for _ in range(2))

    def score(s, b, h, q, k):
        return s - torch.where(q > k, before[h] * (q - k), behind[h] * (k - q))
    return lambda: score, None, []


@case()
def soft_mask(torch, device, heads, length):
    """Learned token pruning (Kim et al., 2022): keys are there with a probability."""
    probability = torch.rand(length, device=device) * 0.9 + 0.1
    return lambda: lambda s, b, h, q, k: s + torch.log(probability[k]), None, []


@case(per="batch")
def key_bias(torch, device, heads, length):
    """A penalty of each key, learned or of another network, as for tokens to be dropped."""
    penalties = torch.randn(2, heads, length, device=device)
    return lambda penalties: lambda s, b, h, q, k: s + penalties[b, h, k], None, [penalties]


@case(per="batch")
def query_temperature(torch, device, heads, length):
    """Selective attention (Zhang et al., 2024): a temperature of each query."""
    scales = torch.rand(2, heads, length, device=device) + 0.5
    return lambda scales: lambda s, b, h, q, k: s * scales[b, h, q], lambda: causal_mask, [scales]


@case()
def relative_keys(torch, device, heads, length):
    """Shaw et al. (2018): a number of each query for each distance, up to 64."""
    reach = 64
    rows = torch.randn(heads, length, 2 * reach + 1, device=device)
    return lambda rows: lambda s, b, h, q, k: s + rows[h, q, torch.clamp(k - q, -reach, reach) + reach], None, [rows]


@case()
def disentangled(torch, device, heads, length):
    """DeBERTa (He et al., 2021): numbers of each query and of each key for each distance, up to 256."""
    reach = 256
    rows, columns = (torch.randn(heads, length, 2 * reach, device=device) for _ in range(2))

    def make(rows, columns):
        def score(s, b, h, q, k):
            ahead, behind = (torch.clamp(d + reach, 0, 2 * reach - 1) for d in (q - k, k - q))
            return s + rows[h, q, ahead] + columns[h, k, behind]
        return score
    return make, None, [rows, columns]


@case()
def pair_bias(torch, device, heads, length):
    """AlphaFold (Jumper et al., 2021): a number for each pair, here the same for all heads."""
    bias = torch.randn(length, length, device=device, dtype=torch.bfloat16)
    return lambda: lambda s, b, h, q, k: s + bias[q, k], None, []


@case()
def gaussian(torch, device, heads, length):
    """A penalty for the square of the distance (Guo et al., 2019), with a width for each head."""
    width = torch.rand(heads, device=device) * length / 8 + 32

    def score(s, b, h, q, k):
        distance = (q - k) / width[h]
        return s - 0.5 * distance * distance
    return lambda: score, None, []


@case()
def sandwich(torch, device, heads, length):
    """Sandwich (Chi et al., 2023): sines and cosines of positions, as a sum of cosines."""
    def score(s, b, h, q, k):
        distance = (q - k).to(torch.float32)
        return s + sum(torch.cos(distance / 10000 ** (n / 4)) for n in range(4))
    return lambda: score, lambda: causal_mask, []


@case()
def swish(torch, device, heads, length):
    """Scores of far keys times their sigmoid (Ramachandran et al., 2017), those of near ones as they are."""
    return (lambda: lambda s, b, h, q, k: torch.where(q - k < 256, s, s * torch.sigmoid(s)),
            lambda: causal_mask, [])


@case()
def quadratic(torch, device, heads, length):
    """Scores and their square, as in a Taylor series of the exponential function."""
    return lambda: lambda s, b, h, q, k: s + 0.1 * s * s, None, []


@case()
def retention(torch, device, heads, length):
    """RetNet (Sun et al., 2023): scores times a power of the distance."""
    def score(s, b, h, q, k):
        decay = torch.log2(1 - torch.exp2(-5.0 - h))
        return s * torch.exp2((q - k) * decay)
    return lambda: score, lambda: causal_mask, []


@case(per="batch")
def timestamps(torch, device, heads, length):
    """TiSASRec (Li et al., 2020): a slope for the time between two events."""
    time = torch.rand(2, length, device=device).cumsum(1)
    slope = torch.exp2(-torch.arange(1, heads + 1, device=device) * 8.0 / heads)
    return lambda slope: lambda s, b, h, q, k: s - slope[h] * (time[b, q] - time[b, k]), lambda: causal_mask, [slope]


@case()
def longer_than_trained(torch, device, heads, length):
    """Scaling with the logarithm of the length (Chiang and Cholak, 2022), and a window."""
    def score(s, b, h, q, k):
        return s * torch.clamp(torch.log(q + 1.0) / math.log(512), min=1.0)
    return lambda: score, lambda: lambda b, h, q, k: (q >= k) & (q - k < length // 2), []


@case()
def capped_in_window(torch, device, heads, length):
    """Gemma 2: a cap on scores, and a window of half the length."""
    reach = length // 2
    return (lambda: lambda s, b, h, q, k: 50 * torch.tanh(s / 50),
            lambda: lambda b, h, q, k: (q >= k) & (q - k < reach), [])


@case()
def documents_with_alibi(torch, device, heads, length):
    ids = spans_of(torch, device, length, 6, seed=11)

    def score(s, b, h, q, k):
        return s - torch.exp2(-((h + 1) * 8.0 / heads)) * (q - k).abs()
    return lambda: score, lambda: lambda b, h, q, k: (ids[q] == ids[k]) & (q >= k), []
