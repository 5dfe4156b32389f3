import type { Tone as Meaning, StateWord } from '../../contract/words/states.js'
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

/** The colour of a state. */
const COLOURS: Readonly<Record<Meaning, Tone>> = { ok: 'green', busy: 'blue', warn: 'yellow', bad: 'red', idle: 'dim' }

/** The tone of the word for a state. */
export const toneOf = ({ tone }: StateWord): Tone => COLOURS[tone]
