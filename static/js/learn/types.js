/**
 * What a lab answers, and what its parameters look like.
 *
 * @typedef {{label: string, log: boolean, zero?: boolean}} Axis
 * @typedef {'measured' | 'theory' | 'published' | 'estimate'} Origin
 * @typedef {(number | string | null)[]} Values
 * @typedef {{name: string, origin: Origin, x: Values, y: (number | null)[], band: (number | null)[][] | null}} Line
 * @typedef {{id: string, title: string, kind: 'lines' | 'bars' | 'points', x: Axis, y: Axis, lines: Line[]}} Chart
 * @typedef {{id: string, title: string, kind: 'matrix', x: Axis, y: Axis, columns: Values, rows: Values,
 *   values: (number | null)[][], unit: string, diverging: boolean}} Matrix
 * @typedef {Chart | Matrix} Series
 * @typedef {{name: string, relation: '=' | '<=' | '>=', expected: number | null, measured: number | null, tolerance: number | null,
 *   origin: Origin, about: string | null, holds: boolean}} Check
 * @typedef {{lab: string, claims: string[], parameters: Record<string, any>, series: Series[], checks: Check[],
 *   facts: Record<string, any>, notes: string[], limits: Record<string, number>}} Result
 * @typedef {{type?: string, enum?: string[], default?: any, title?: string, description?: string, labels?: Record<string, string>,
 *   needs?: Record<string, any[]>, lines?: number, takes?: string | string[], minimum?: number, maximum?: number,
 *   exclusiveMinimum?: number, multipleOf?: number, exclusiveMaximum?: number, minLength?: number, maxLength?: number, anyOf?: Schema[]}} Schema
 * @typedef {{name: string, question: string, claims: string[], lengthy: boolean, parameters: {properties: Record<string, Schema>}}} Spec
 */
export {};
