import type { Io } from '../io.js'

const CODES = { bold: 1, dim: 2, red: 31, green: 32, yellow: 33, blue: 34 } as const

/** How a text can stand out. */
export type Tone = keyof typeof CODES | 'plain'

/** Colours a text where a person reads it on a terminal that has colours. */
export type Paint = (tone: Tone, text: string) => string

/** The paint for results: none when they go to a file or a pipe, or when `NO_COLOR` is set. */
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

/** The tone in which a state is shown, whatever it is a state of. */
export const toneOfState = (state: string): Tone => TONES[state] ?? 'plain'
