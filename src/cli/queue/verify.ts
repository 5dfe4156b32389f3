import { verifySignature } from '../../contract/queue/verify.js'
import { misused } from '../errors.js'
import { FAILED } from '../exit-codes.js'
import { remote } from '../remote/remote.js'
import { pair } from '../remote/values.js'
import { readInput } from '../terminal/ask.js'
import { printable } from '../terminal/text.js'
import { readFileOf } from './settings.js'

interface VerifyOptions {
  readonly headers: string
  readonly body?: string
  readonly url?: string
}

/** `homeport queue verify`: checks the signature of a delivery. */
export const verifyCommand = remote<VerifyOptions>({
  name: 'verify',
  summary: 'check the signature of a delivery; exit code 1 when it is not valid',
  flags: (command) =>
    command
      .requiredOption('--headers <file>', 'the headers as they arrived: a JSON object, or one "Name: value" per line')
      .option('--body <file>', 'the body as it arrived; "-" for the standard input')
      .option('--url <url>', 'the URL that the receiver expects (default: not compared)'),
  examples: ['homeport queue verify --headers headers.json --body body.json --url https://example.com/hook'],
  run: async ({ api, io, show, endWith }, { headers: file, body, url }) => {
    const headers = readHeaders((await readFileOf(file)).toString('utf8'))
    const bytes = body === '-' ? await readInput(io) : body === undefined ? undefined : await readFileOf(body)
    const bodyBase64 = bytes?.toString('base64')
    const verdict = await api.call(verifySignature, {
      body: { headers, ...(bodyBase64 !== undefined && { bodyBase64 }), ...(url !== undefined && { url }) },
    })
    show(verdict, () => {
      if (verdict.valid) return `valid, signed with the ${verdict.signedWith ?? 'current'} key\n`
      return verdict.problems.map(({ part, problem }) => `${part}: ${printable(problem)}\n`).join('')
    })
    if (!verdict.valid) endWith(FAILED)
  },
})

function readHeaders(text: string): Record<string, string> {
  if (!text.trimStart().startsWith('{')) {
    const lines = text.split(/\r?\n/).filter((line) => line.includes(':'))
    return lines.reduce<Record<string, string>>((headers, line) => pair(line, headers), {})
  }
  try {
    const value: unknown = JSON.parse(text)
    return Object.fromEntries(Object.entries(value ?? {}).map(([name, one]) => [name, String([one].flat()[0])]))
  } catch {
    throw misused('The headers file begins like JSON but is not valid JSON.')
  }
}
