import type { StateWord } from '../../../src/contract/words/states.js'
import { capital } from '../lib/states.js'
import { Status } from './status.js'

/** The word for a state: `<StateOf word={BACKUP_WORDS[state]} />`. */
export function StateOf({ word: { word, tone } }: { word: StateWord }) {
  return <Status tone={tone}>{capital(word)}</Status>
}
