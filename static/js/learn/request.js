/** Asking for a lab: its answer, or its progress and then its answer. */
import { Problem, loadModel, post, problemOf, received } from '../api.js';

/** @typedef {import('./types.js').Result} Result */
/** @typedef {(fraction: number | null, words: string, result: Result | null) => void} Listener */

/**
 * A model that is not there yet is awaited.
 * @param {import('./types.js').Spec} spec
 * @param {Record<string, any>} parameters
 * @param {AbortSignal} signal aborting it stops the lab
 * @param {Listener} onProgress
 * @returns {Promise<Result>}
 */
export async function runLab(spec, parameters, signal, onProgress) {
  try {
    return await ask(spec, parameters, signal, onProgress);
  } catch (error) {
    if (!(error instanceof Problem) || error.slug !== 'model-not-ready' || !parameters.model) throw error;
    await loadModel(parameters.model, ({ title, message, state, progress }) => onProgress(progress, `${title}: ${message ?? state}`, null), signal);
    return ask(spec, parameters, signal, onProgress);
  }
}

/**
 * @param {import('./types.js').Spec} spec
 * @param {Record<string, any>} parameters
 * @param {AbortSignal} signal
 * @param {Listener} onProgress
 */
async function ask(spec, parameters, signal, onProgress) {
  // Streamed, so that leaving stops it and waiting in line is heard of, however quick a lab should be.
  return last(await post(`/api/labs/${spec.name}`, parameters, signal, { Accept: 'text/event-stream' }), onProgress);
}

/** @param {Response} response @param {Listener} onProgress @returns {Promise<Result>} what the stream ends with */
async function last(response, onProgress) {
  const reader = /** @type {ReadableStream} */ (response.body).pipeThrough(new TextDecoderStream()).getReader();
  let pending = '';
  /** @type {Result | null} */
  let result = null;
  for (;;) {
    const { done, value } = await received(reader.read());
    if (done) break;
    const events = (pending + value).split(/\r?\n\r?\n/);
    pending = /** @type {string} */ (events.pop());
    for (const event of events) result = heard(event, onProgress) ?? result;
  }
  if (!result) throw new Problem('cut', 'The connection broke before the answer was complete. Press Run to try again.');
  return result;
}

/** @param {string} event @param {Listener} onProgress @returns {Result | null} */
function heard(event, onProgress) {
  const lines = event.split(/\r?\n/);
  const data = JSON.parse(lines.filter((line) => line.startsWith('data:')).map((line) => line.slice(5)).join('\n'));
  if (lines.includes('event: problem')) throw problemOf(data);
  onProgress(data.fraction, data.words, data.result);
  return data.fraction === 1 ? data.result : null;
}
