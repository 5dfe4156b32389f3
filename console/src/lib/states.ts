/** The words of states as the console shows them: with a capital letter. */
import type { StateWord, StateWords, Tone } from '../../../src/contract/words/states.js'

/** A state as a title with its tone. */
export interface StateTitle {
  readonly tone: Tone
  readonly title: string
}

/** A word with a capital letter. */
export const capital = (word: string): string => word.charAt(0).toUpperCase() + word.slice(1)

/** A state as a title. */
export const titleOf = ({ word, tone }: StateWord): StateTitle => ({ tone, title: capital(word) })

/** A table of words as titles. */
export const titlesOf = <State extends string>(words: StateWords<State>): Readonly<Record<State, StateTitle>> =>
  // The entries are those of the table.
  Object.fromEntries(Object.entries<StateWord>(words).map(([state, word]) => [state, titleOf(word)])) as Record<
    State,
    StateTitle
  >
