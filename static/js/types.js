/**
 * Shapes shared by the modules: what the API answers and what the page keeps.
 *
 * @typedef {{id: number, text: string, span: [number, number] | null, words: number[], special: boolean, segment: number}} Token
 * @typedef {{site: string, stack: string, kind: string, layer: number, heads: number, kv_heads: number, d_k: number,
 *   scale: number, scale_words: string, mask: string, mask_by_head: boolean, queries: number, keys: number,
 *   query_tokens: 'tokens' | 'source_tokens', key_tokens: 'tokens' | 'source_tokens'}} Site
 * @typedef {{id: number, text: string, p: number}} Prediction
 * @typedef {{kind: 'logits', position: number, top: Prediction[]}
 *   | {kind: 'embedding', similarity: number[]}
 *   | {kind: 'masked', positions: {position: number, top: Prediction[]}[]}} Readout
 * @typedef {{id: string, model: {id: string, revision: string | null, family: string}, tokens: Token[],
 *   source_tokens: Token[] | null, written: boolean,
 *   sites: Site[], sizes: {tokens: number, layers: number, heads: number, bytes: number}, device: string, dtype: string,
 *   ms: number, plan: object[], plan_words: string, readout: Readout | null, notices: string[]}} TraceAnswer
 * @typedef {{model: string, text?: string, audio?: string, recording?: string, target?: string, target_ids?: number[], plan: object[]}} TraceRequest
 *
 * @typedef {{id: string, title: string, family: string | null, stacks: string[] | null, layers: number | null, heads: number | null,
 *   width: number | null, max_tokens: number | null, readout: string | null, supports: string[] | null,
 *   state: 'absent' | 'queued' | 'fetching' | 'loading' | 'ready' | 'failed', progress: number | null,
 *   message: string | null, revision: string | null, licence: string | null, size: number | null, example: string | null, recording: string | null, opens: [number, number] | null,
 *   own_mask: 'bidirectional' | 'causal' | null, builtin: boolean}} ModelStatus
 * @typedef {{default: string, device: string, dtype: string, hub: boolean, models: ModelStatus[]}} ModelList
 *
 * @typedef {{entropy: number | null, diagonal: number | null, previous: number | null, next: number | null,
 *   first: number | null, max: number | null}} HeadFigures
 * @typedef {{definitions: Record<string, string>, sites: {site: string, heads: HeadFigures[]}[]}} HeadsAnswer
 * @typedef {{site: string, head: number, query: {index: number, text: string}, key: {index: number, text: string},
 *   q: number[], k: number[], products: number[], dot: number, scale: number, scale_words: string, scaled: number,
 *   softcap: number | null, bias: number, bias_words: string, mask: 'open' | 'closed', score: number | null, row_max: number,
 *   row_sum_exp: number, weight: number, weight_words: string | null, v: number[], contribution_norm: number}} PairAnswer
 * @typedef {{query: number, key: number, layers: number[], weights: number[][]}} LinksAnswer
 *
 * @typedef {{max: number, mean: number, tv: number}} HeadChange
 * @typedef {{a: {site: string, head: number}, b: {site: string, head: number}, tv: number}} ClosestHead
 * @typedef {{a: {id: string, plan_words: string}, b: {id: string, plan_words: string}, by: string, same_weights: boolean,
 *   alignment: {label: string, a: number[], b: number[]}[], unaligned: {a: number[], b: number[]},
 *   sites: {site: string, stack: string, kind: string, layer: number, heads: HeadChange[]}[] | null,
 *   sites_reason: string | null, overall: {tv: number, over: string}, closest: ClosestHead[] | null,
 *   layers: {stack: string, layer: number, cosine: number, relative: number}[] | null, layers_reason: string | null,
 *   readout: {kind: 'embedding', cosine: number}
 *     | {kind: 'logits', tv: number, kl: number, a: Prediction[], b: Prediction[]} | null,
 *   readout_reason: string | null}} CompareAnswer
 *
 * @typedef {Float32Array | Float64Array | Uint8Array | Int8Array | Int16Array | Uint16Array | Int32Array | Uint32Array} Numbers
 * @typedef {{data: Numbers, shape: number[], dtype: string}} Tensor
 *
 * @typedef {{seconds: number | null, peaks: number[]}} Sound               peaks: loudness from 0 to 1, along its seconds
 * @typedef {{name: string, said: string, source: string, url: string, licence: string}} Recording   a sound that comes along
 * @typedef {[number, number]} Range                                   half open
 * @typedef {{name: 'own' | 'bidirectional' | 'causal'} | {name: 'window', left: number, right: number}
 *   | {name: 'prefix', length: number}} MaskRule
 * @typedef {{mask: MaskRule, scale: 'own' | 'none'}} Setting
 * @typedef {Setting & {model: string, groups?: Record<string, Setting>}} Side   groups: by stack and kind, where a model has several
 * @typedef {{layer: number, head: number}} HeadRef
 * @typedef {{queries: Token[], keys: Token[], same: boolean}} Axes        same: queries and keys are one text
 * @typedef {{stack: string | null, layer: number | null, head: number | null, query: number | null,
 *   key: number | null, auto: boolean}} Pick                           auto: chosen by the page, not by the user
 * @typedef {'matrix' | 'lines' | 'text'} Tab
 * @typedef {'power' | 'linear' | 'log'} Transfer
 * @typedef {{text: string, target: string, recording: string, view: 'one' | 'ab', a: Side, b: Side, pick: Pick, pickB: HeadRef | null, tab: Tab,
 *   colour: Transfer, zoom: {rows: Range, cols: Range} | null}} State
 *
 * @typedef {{data: Numbers, rows: number, cols: number, rowRange: Range, colRange: Range, exact: boolean}} Matrix
 *
 * @typedef {{panel: string, ink: string, soft: string, line: string, hatch: string, query: string, key: string,
 *   value: string, deep: string, change: string, accent: string, shade: string, hatchLine: string}} Palette
 */
export {};
