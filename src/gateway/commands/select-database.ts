import { encodeError, encodeSimple } from '../resp/encode.js'
import { wholeNumber } from '../resp/whole-number.js'
import { arityProblem } from './own-arity.js'

const OK = encodeSimple('OK')
const NO_INDEX = 'value is out of range, value must between -2147483648 and 2147483647'

/** What SELECT is answered, on every protocol: as by an engine that has one database. `args` stand behind the name. */
export function selectReply(args: readonly string[]): Buffer {
  const problem = arityProblem('SELECT', args.length + 1)
  if (problem !== undefined) return encodeError(`ERR ${problem}`)
  const number = wholeNumber(args[0] ?? '')
  if (number === undefined) return encodeError('ERR value is not an integer or out of range')
  if (number < -(2 ** 31) || number >= 2 ** 31) return encodeError(`ERR ${NO_INDEX}`)
  return number === 0 ? OK : encodeError('ERR DB index is out of range')
}
