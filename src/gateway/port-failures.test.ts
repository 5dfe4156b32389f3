import { expect, it } from 'vitest'
import { yieldToEventLoop } from '../base/index.js'
import { PortFailures } from './port-failures.js'

function ports() {
  const lines: unknown[] = []
  const shut = new PortFailures({ error: (...line: unknown[]) => void lines.push(line) })
  return {
    lines,
    note: (...ids: string[]) => ids.forEach((databaseId) => void shut.add({ databaseId, error: 'held' })),
  }
}

it('tells of one port by the name of its database', async () => {
  const { lines, note } = ports()
  note('a')
  await yieldToEventLoop()
  expect(lines).toEqual([[{ error: 'held', databaseId: 'a' }, 'the port of a database cannot be opened']])
})

it('tells of all that fail in one go in one line, and of those that fail later in another', async () => {
  const { lines, note } = ports()
  note('a', 'b', 'c')
  await yieldToEventLoop()
  note('d')
  await yieldToEventLoop()
  expect(lines).toEqual([
    [{ error: 'held', databaseId: 'a', databases: 3 }, 'the ports of 3 databases cannot be opened'],
    [{ error: 'held', databaseId: 'd' }, 'the port of a database cannot be opened'],
  ])
})
