import { nearestWord } from '../base/index.js'

/** Names of an option: `apiPort` is the flag `--api-port` and the variable `HOMEPORT_API_PORT`. */

const words = (name: string): string[] => name.split(/(?=[A-Z])/).map((word) => word.toLowerCase())

/** `dataDir` becomes `--data-dir`. */
export const flagName = (option: string): string => `--${words(option).join('-')}`

/** `dataDir` becomes `HOMEPORT_DATA_DIR`. */
export const envName = (option: string): string => `HOMEPORT_${words(option).join('_').toUpperCase()}`

/** "; did you mean X?", or an empty text when no known word is close. */
export function suggestion(word: string, known: readonly string[]): string {
  const match = nearestWord(word, known)
  return match === undefined ? '' : `; did you mean ${match}?`
}
