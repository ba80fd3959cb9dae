/** Comparisons worth making at once, from whatever models are there. */

/** @typedef {import('./types.js').ModelStatus} ModelStatus */
/** @typedef {import('./types.js').Side} Side */
/** @typedef {{label: string, a: Side, b: Side}} Preset */

/**
 * @param {string} model
 * @param {import('./types.js').MaskRule} mask
 * @returns {Side}
 */
const side = (model, mask = { name: 'own' }) => ({ model, mask, scale: 'own' });

/** The title without what stands in brackets behind it. @param {string} title */
export const shortTitle = (title) => title.replace(/\s*\([^()]*\)$/, '');

/**
 * @param {ModelStatus[]} models
 * @returns {Preset[]}
 */
export function presets(models) {
  const usable = models.filter((model) => model.builtin && model.state !== 'failed' && model.stacks?.length === 1);
  const encoders = usable.filter((model) => model.stacks?.[0] === 'encoder');
  const decoders = usable.filter((model) => model.stacks?.[0] === 'decoder');
  // a sentence is read by both, a reaction by one of them only
  const beside = encoders.flatMap((encoder) => decoders.filter(({ example }) => example === encoder.example).map((decoder) => ({
    label: `Encoder beside decoder: ${encoder.id} | ${decoder.id}`, a: side(encoder.id), b: side(decoder.id),
  })));
  const masks = usable.flatMap((model) => {
    if (!model.own_mask || !model.supports?.includes('set_mask')) return [];
    const other = model.own_mask === 'causal' ? 'bidirectional' : 'causal';
    return [{ label: `${model.id}: own against ${other}`, a: side(model.id), b: side(model.id, { name: other }) }];
  });
  return [...beside, ...masks];
}
