import type { Io } from '../io.js'

export { printable } from '../../base/index.js'

/** Cuts text to this many characters, with an ellipsis. */
export function cut(text: string, most: number): string {
  const characters = [...text]
  return characters.length <= most ? text : `${characters.slice(0, Math.max(0, most - 1)).join('')}…`
}

/** Width of a text in code points. */
export const widthOf = (text: string): number => [...text].length

const CODES = { bold: 1, dim: 2, red: 31, green: 32, yellow: 33, blue: 34 } as const

/** A style of text. */
export type Tone = keyof typeof CODES | 'plain'

/** Styles a text if the terminal shows colours. */
export type Paint = (tone: Tone, text: string) => string

/** The paint for results: no styles in a file or a pipe, or when `NO_COLOR` is set. */
export function paintOf(io: Io): Paint {
  const isColoured = io.terminal?.out === true && !io.terminal.noColor
  return (tone, text) => (isColoured && tone !== 'plain' ? `\u001b[${CODES[tone]}m${text}\u001b[0m` : text)
}

const TONES: Readonly<Record<string, Tone>> = {
  active: 'green',
  passive: 'dim',
  suspended: 'red',
  completed: 'green',
  pending: 'yellow',
  failed: 'red',
  DELIVERED: 'green',
  RETRY: 'yellow',
  ERROR: 'red',
  FAILED: 'red',
  CANCELED: 'dim',
  RUN_STARTED: 'blue',
  RUN_SUCCESS: 'green',
  RUN_FAILED: 'red',
  RUN_CANCELED: 'dim',
  STEP_SUCCESS: 'green',
  STEP_RETRY: 'yellow',
  STEP_FAILED: 'red',
  running: 'blue',
  paused: 'yellow',
  finished: 'green',
  aborted: 'red',
}

/** The tone of a state of any object. */
export const toneOfState = (state: string): Tone => TONES[state] ?? 'plain'
