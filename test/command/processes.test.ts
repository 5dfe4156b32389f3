import { expect, it } from 'vitest'
import { startPostgresServer } from '../../src/store/testing/postgres-server.js'
import { atCleanup, freePortRange, startHomeport, waitFor } from '../support/index.js'

it('the server starts all processes again when they end at the same time', async () => {
  const postgres = await startPostgresServer()
  atCleanup(() => postgres.stop())
  const args = [
    '--processes',
    '2',
    '--node',
    'a',
    '--advertise',
    '127.0.0.1',
    '--peer-port',
    `${(await freePortRange(2)).from}`,
  ]
  const homeport = await startHomeport({ args, env: { HOMEPORT_STORE: `${postgres.url}/postgres` } })
  await waitFor(() => homeport.logs().includes('2 processes serve'), { what: 'both processes' })

  const servers = homeport.processes().filter(({ pid, command }) => pid !== homeport.pid && command.includes('start'))
  expect(servers).toHaveLength(2)
  for (const { pid } of servers) process.kill(pid, 'SIGKILL')
  await waitFor(() => homeport.logs().match(/It starts again/g)?.length === 2, { what: 'the ends to be noticed' })
  const serves = async () => (await homeport.queue('GET', '/v2/schedules')).status === 200
  await waitFor(() => serves().catch(() => false), { what: 'a server again' })
})
