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

it('logs one port with the id of its database', async () => {
  const { lines, add } = ports()
  add('a')
  await yieldToEventLoop()
  expect(lines).toEqual([['gateway_port_not_opened', { error: 'held', databaseId: 'a' }]])
})

it('logs all ports that fail in one turn in one line, and later ones in another', async () => {
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
