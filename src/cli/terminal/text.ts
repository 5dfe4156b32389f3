import type { Tone as Meaning, StateWord } from '../../contract/words/states.js'
import type { Io } from '../io.js'

export { printable } from '../../base/index.js'

/** Accents, joiners and variation selectors take no column. */
const NARROW = /[\p{M}\p{Cf}]/u
/** Terminals show these in two columns: Chinese, Japanese and Korean letters, full-width forms, emoji. */
const WIDE =
  /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\p{Emoji_Presentation}]/u
const ASCII = /^[ -~]*$/

/** Columns that a code point takes on a terminal. */
const columnsOf = (character: string): number => (NARROW.test(character) ? 0 : WIDE.test(character) ? 2 : 1)

/** Columns that a text takes on a terminal. */
export const widthOf = (text: string): number =>
  ASCII.test(text) ? text.length : [...text].reduce((sum, character) => sum + columnsOf(character), 0)

/** Cuts text to this many columns, with an ellipsis. */
export function cut(text: string, most: number): string {
  if (widthOf(text) <= most) return text
  let left = most - 1
  const kept: string[] = []
  for (const character of text) {
    left -= columnsOf(character)
    if (left < 0) break
    kept.push(character)
  }
  return `${kept.join('')}…`
}

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
