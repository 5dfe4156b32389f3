import { readdirSync, readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { makeProgram } from '../program.js'
import { withCommands } from './requests.js'

/** Requests that no command sends. */
const WITHOUT_COMMAND = /\/v2\/qstash\/users?/

it.each([
  [
    'There is no schedule "x". GET /v2/schedules lists all of them.',
    '`homeport queue schedules list` lists all of them.',
  ],
  ['Follow it with GET /v2/workflows/bulkActions/bulk_1.', 'Follow it with `homeport bulk show bulk_1`.'],
  ['GET /v2/workflows/logs?workflowRunId=wfr_1 shows what it did.', '`homeport runs show wfr_1` shows what it did.'],
  ['Enable TLS first: POST /v2/redis/enable-tls/{id}.', 'Enable TLS first: `homeport db tls`.'],
])('names the command instead of the request: %s', (text, expected) => {
  expect(withCommands(text)).toContain(expected)
})

it('the table knows every request that an error of the catalogue names, and only commands that exist', async () => {
  const folder = new URL('../../contract/errors/', import.meta.url)
  const texts = readdirSync(folder).flatMap((file) => readFileSync(new URL(file, folder), 'utf8').split('\n'))
  const named = texts
    .filter((line) => /(GET|POST|PUT|PATCH|DELETE) \/v2\//.test(line) && !WITHOUT_COMMAND.test(line))
    .map((line) => withCommands(line.replaceAll(/\$\{\w+\}/g, 'x1')))
  expect(named.length).toBeGreaterThan(20)
  expect(named.filter((line) => /(GET|POST|PUT|PATCH|DELETE) \/v2\//.test(line))).toEqual([])

  const nothing = (): void => undefined
  const program = await makeProgram(['completion'], { out: nothing, err: nothing }, nothing)
  for (const [, words = ''] of named.join('\n').matchAll(/`homeport ([^`]*)`/g)) {
    let command = program
    for (const word of words.split(' ')) command = command.commands.find((one) => one.name() === word) ?? command
    expect(command.commands, words).toEqual([])
  }
})
