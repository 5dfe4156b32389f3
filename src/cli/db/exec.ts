import { FAILED } from '../exit-codes.js'
import { remote } from '../remote/remote.js'
import { readInput } from '../terminal/ask.js'
import { printable } from '../terminal/text.js'
import { isText, openData, renderReply, toJson } from './data-plane.js'
import { DATABASE } from './find.js'

/** `homeport db exec`: runs one command in a database over REST. */
export const execCommand = remote<{ stdin: boolean; raw: boolean }, [string, string[]]>({
  name: 'exec',
  summary: 'run one command in a database',
  args: [DATABASE, ['<command...>', 'the command with its arguments; put -- before it']],
  flags: (command) =>
    command
      .option('--stdin', 'use the standard input, byte for byte, as the last argument', false)
      .option('--raw', 'print a text reply byte for byte', false),
  examples: [
    'homeport db exec shop -- set greeting hello',
    'homeport db exec shop -- hgetall cart:1',
    'homeport db exec shop --stdin -- set picture < picture.png',
    'homeport db exec shop --raw -- get picture > picture.png',
  ],
  run: async ({ api, io, isJson, endWith }, { stdin, raw }, wanted, words) => {
    const execute = await openData(api, wanted)
    const outcome = await execute(words, stdin ? await readInput(io) : undefined)
    if (outcome.kind === 'refused') {
      io.err(`error: ${printable(outcome.error)}\n`)
      return endWith(FAILED)
    }
    const { reply } = outcome
    if (raw && isText(reply)) io.bytes?.(reply)
    else io.out(isJson ? `${JSON.stringify(toJson(reply))}\n` : renderReply(reply))
  },
})
