/** Everything that goes over the network. */
import { readNpy } from './payload.js';

/** An RFC 9457 problem, or what stands for one when no answer came. */
export class Problem extends Error {
  /**
   * @param {string} slug
   * @param {string} detail one sentence for the user
   * @param {Record<string, any>} [extra]
   */
  constructor(slug, detail, extra = {}) {
    super(detail);
    this.slug = slug;
    this.detail = detail;
    this.extra = extra;
  }
}

/** @param {any} body a problem document @returns {Problem} */
export const problemOf = (body) => new Problem(String(body.type ?? '').replace('urn:attention-atlas:', ''), body.detail, body);

/**
 * @param {Response} response
 * @returns {Promise<Problem>}
 */
async function problemIn(response) {
  try {
    const body = await response.json();
    if (body.detail) return problemOf(body);
  } catch { /* not JSON: the status line has to do */ }
  return new Problem('http', `The server answered ${response.status} ${response.statusText} without saying why; try again.`);
}

/**
 * @param {string} url
 * @param {RequestInit} [init]
 * @returns {Promise<Response>}
 * @throws {Problem}
 */
async function request(url, init) {
  let response;
  try {
    response = await fetch(url, init);
  } catch (error) {
    if (error instanceof DOMException && error.name === 'AbortError') throw error;
    throw new Problem('unreachable', 'The server did not answer: it may have been stopped. Start it again, then press Retry.');
  }
  if (!response.ok) throw await problemIn(response);
  return response;
}

/**
 * The body of an answer, whose arrival can fail as well as its beginning.
 * @template T
 * @param {Promise<T>} body
 * @returns {Promise<T>}
 */
export async function received(body) {
  try {
    return await body;
  } catch (error) {
    if (error instanceof DOMException && error.name === 'AbortError') throw error;
    throw new Problem('cut', 'The connection broke before the answer was complete. Press Retry.');
  }
}

/**
 * @param {string} url
 * @param {unknown} body
 * @param {AbortSignal} [signal]
 * @param {Record<string, string>} [headers]
 */
export const post = (url, body, signal, headers = {}) => request(url, {
  method: 'POST', headers: { 'Content-Type': 'application/json', ...headers }, body: JSON.stringify(body), signal,
});

/** @param {string} name @returns {Promise<Blob>} a sound that comes along */
export const fetchRecording = async (name) => received((await request(`/api/recordings/${encodeURIComponent(name)}`)).blob());

/** @returns {Promise<import('./types.js').ModelList>} */
export const models = async () => received((await request('/api/models')).json());

/**
 * Asks for a model and follows its arrival.
 * @param {string} model
 * @param {(status: import('./types.js').ModelStatus) => void} onStatus
 * @param {AbortSignal} [signal]
 */
export async function loadModel(model, onStatus, signal) {
  const response = await post('/api/models/load', { model }, signal);
  const reader = /** @type {ReadableStream} */ (response.body).pipeThrough(new TextDecoderStream()).getReader();
  let pending = '';
  for (;;) {
    const { done, value } = await received(reader.read());
    if (done) return;
    const events = (pending + value).split(/\r?\n\r?\n/);
    pending = /** @type {string} */ (events.pop());
    for (const event of events) {
      const data = event.split(/\r?\n/).filter((line) => line.startsWith('data:')).map((line) => line.slice(5));
      if (data.length) onStatus(JSON.parse(data.join('\n')));
    }
  }
}

/** A run that the server holds. */
export class Trace {
  /**
   * @param {import('./types.js').TraceRequest} asked
   * @param {import('./types.js').TraceAnswer} answer
   */
  constructor(asked, answer) {
    this.asked = asked;
    this.answer = answer;
  }

  /** @param {string} path */
  url(path) {
    return `/api/traces/${this.answer.id}/${path}`;
  }

  /**
   * A trace that the server has dropped is asked for again, once: its id depends on the request alone.
   * @param {string} path
   * @param {AbortSignal} [signal]
   */
  async get(path, signal) {
    try {
      return await request(this.url(path), { signal });
    } catch (error) {
      if (!(error instanceof Problem) || error.slug !== 'trace-gone') throw error;
      await post('/api/traces', this.asked, signal);
      return request(this.url(path), { signal });
    }
  }

  /**
   * @param {string} path
   * @param {AbortSignal} [signal]
   */
  async json(path, signal) {
    return received((await this.get(path, signal)).json());
  }

  /**
   * @param {string} path
   * @param {AbortSignal} [signal]
   * @returns {Promise<{tensor: import('./types.js').Tensor, pool: string}>}
   */
  async npy(path, signal) {
    const response = await this.get(path, signal);
    const tensor = readNpy(await received(response.arrayBuffer()));
    return { tensor, pool: response.headers.get('X-Atlas-Pool') ?? 'none' };
  }
}

/**
 * @param {import('./types.js').TraceRequest} asked
 * @param {AbortSignal} [signal]
 */
export async function openTrace(asked, signal) {
  const response = await post('/api/traces', asked, signal);
  return new Trace(asked, await received(response.json()));
}

/**
 * @param {import('./types.js').TraceRequest} a
 * @param {import('./types.js').TraceRequest} b
 * @param {'token' | 'word'} by
 * @param {AbortSignal} [signal]
 * @returns {Promise<import('./types.js').CompareAnswer>}
 */
export async function compare(a, b, by, signal) {
  return received((await post('/api/compare', { a, b, by }, signal)).json());
}
