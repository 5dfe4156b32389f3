import { Type } from 'typebox'
import { getDatabase } from '../../contract/databases.js'
import { HomeportError } from '../../contract/errors.js'
import { FAILED } from '../exit-codes.js'
import { parsed } from '../remote/api.js'
import { remote } from '../remote/remote.js'
import { readInput } from '../terminal/ask.js'
import { printable } from '../terminal/text.js'
import { DATABASE, databaseNamed } from './find.js'
import { isText, readReply, renderReply, toJson } from './reply.js'

/** What the REST data plane answers to one command (reference redis 4.2). */
const AnswerSchema = Type.Object({ result: Type.Optional(Type.Unknown()), error: Type.Optional(Type.String()) })

/** What runs where, and with which rights. */
interface Target {
  readonly url: string
  readonly token: string
}

/** `homeport db exec`: runs one command in a database, over REST. */
export const execCommand = remote<{ stdin: boolean; raw: boolean }, [string, string[]]>({
  name: 'exec',
  summary: 'run one command in a database',
  args: [DATABASE, ['<command...>', 'the command with its arguments; put -- before it']],
  flags: (command) =>
    command
      .option('--stdin', 'the standard input, byte for byte, is the last argument', false)
      .option('--raw', 'print a text reply byte for byte, and nothing around it', false),
  examples: [
    'homeport db exec shop -- set greeting hello',
    'homeport db exec shop -- hgetall cart:1',
    'homeport db exec shop --stdin -- set picture < picture.png',
    'homeport db exec shop --raw -- get picture > picture.png',
  ],
  run: async ({ api, io, isJson, endWith }, { stdin, raw }, wanted, words) => {
    const { database_id: id } = await databaseNamed(api, wanted)
    const { rest_url: url, rest_token: token } = await api.call(getDatabase, { params: { id } })
    if (token === undefined) throw new HomeportError('cli_no_credentials', { problem: READ_ONLY })
    const { result, error } = await execute({ url, token }, words, stdin ? await readInput(io) : undefined)
    if (error !== undefined) {
      io.err(`error: ${printable(error)}\n`)
      return endWith(FAILED)
    }
    const reply = readReply(result)
    if (raw && isText(reply)) io.bytes?.(reply)
    else io.out(isJson ? `${JSON.stringify(toJson(reply))}\n` : renderReply(reply))
  },
})

const READ_ONLY = 'The API key is read-only and does not see the token of the database. Use a key that may write.'

/** Words alone travel as JSON; with bytes behind them they stand in the path, and the bytes are the body. */
async function execute({ url, token }: Target, words: readonly string[], bytes: Uint8Array | undefined) {
  const target = bytes === undefined ? `${url}/` : `${url}/${words.map(encodeURIComponent).join('/')}`
  const response = await fetch(target, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'upstash-encoding': 'base64' },
    body: bytes === undefined ? JSON.stringify(words) : new Uint8Array(bytes),
  }).catch((cause: unknown) => {
    throw new HomeportError('server_unreachable', { url }, { cause })
  })
  return parsed(AnswerSchema, await response.json().catch(() => undefined))
}
