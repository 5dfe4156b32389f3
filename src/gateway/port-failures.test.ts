import { expect, it } from 'vitest'
import { yieldToEventLoop } from '../base/index.js'
import { PortFailures } from './port-failures.js'

function ports() {
  const lines: unknown[] = []
  const failures = new PortFailures({ error: (...line: unknown[]) => void lines.push(line) })
  return {
    lines,
    add: (...ids: string[]) => ids.forEach((databaseId) => void failures.add({ databaseId, error: 'held' })),
  }
}

it('the log names the database of a single port that fails', async () => {
  const { lines, add } = ports()
  add('a')
  await yieldToEventLoop()
  expect(lines).toEqual([['gateway_port_not_opened', { error: 'held', databaseId: 'a' }]])
})

it('the log has one line for all ports that fail in one turn, and another one for later ports', async () => {
  const { lines, add } = ports()
  add('a', 'b', 'c')
  await yieldToEventLoop()
  add('d')
  await yieldToEventLoop()
  expect(lines).toEqual([
    ['gateway_ports_not_opened', { error: 'held', databaseId: 'a', databases: 3 }],
    ['gateway_port_not_opened', { error: 'held', databaseId: 'd' }],
  ])
})
