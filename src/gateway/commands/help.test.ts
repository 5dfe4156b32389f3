import { beforeAll, describe, expect, it } from 'vitest'
import { waitFor } from '../../../test/support/index.js'
import { COMMANDS } from '../../contract/databases/commands.js'
import { CREDENTIALS, RawClient, type Rig, startRig } from '../testing/rig.js'
import { helpReply } from './help.js'

const containers = COMMANDS.flatMap((command) =>
  command.allowed && command.state === 'container' ? [command.name] : [],
)

/** The subcommands in the help of a container. */
function listedBy(container: string): string[] {
  const lines = helpReply(`${container}|HELP`)?.toString().split('\r\n+').slice(2) ?? []
  const words = lines.filter((line) => /^[A-Z]/.test(line)).map((line) => line.split(/\s/)[0] ?? '')
  return [...new Set(words)].sort()
}

function servedOf(container: string): string[] {
  const prefix = `${container}|`
  return COMMANDS.flatMap(({ name, allowed }) =>
    allowed && name.startsWith(prefix) ? [name.slice(prefix.length)] : [],
  )
}

describe('HELP', () => {
  it.each(containers)('of %s lists the subcommands that are served, and no others', (container) => {
    expect(listedBy(container)).toEqual(servedOf(container).sort())
  })

  describe('is answered', () => {
    let rig: Rig

    beforeAll(async () => {
      rig = await startRig()
    })

    it.each(containers)('on a connection, for %s', async (container) => {
      const raw = await new RawClient(rig.port).login()
      await raw.send(`${container} help\r\n`).expect(helpReply(`${container}|HELP`)?.toString() ?? '')
      await raw
        .send(`${container} HELP me\r\n`)
        .expect(`-ERR wrong number of arguments for '${container.toLowerCase()}|help' command\r\n`)
    })

    it('by the engine where the gateway does not check subcommands', async () => {
      const raw = await new RawClient(rig.port).login()
      for (const container of ['FUNCTION', 'OBJECT', 'PUBSUB', 'XGROUP', 'XINFO']) {
        raw.send(`${container} HELP\r\n`)
        await waitFor(() => / {4}Prints? this help\.\r\n$/.test(raw.received), { what: container })
        raw.received = ''
      }
    })

    it('in transactions, and for users who may only read', async () => {
      const reader = new RawClient(rig.port)
      const help = helpReply('CLIENT|HELP')?.toString()
      reader.send(`AUTH default_ro ${CREDENTIALS.readerPassword}\r\nMULTI\r\nCLIENT HELP\r\nEXEC\r\n`)
      await reader.expect(`+OK\r\n+OK\r\n+QUEUED\r\n*1\r\n${help}`)
    })

    it('over REST, except for commands about connections', async () => {
      const ask = async (path: string): Promise<unknown> => {
        const headers = { Authorization: `Bearer ${CREDENTIALS.token}` }
        return (await fetch(`${rig.restUrl}/${path}`, { headers })).json()
      }
      expect(await ask('config/help')).toEqual({ result: expect.arrayContaining(['HELP', '    Prints this help.']) })
      expect(await ask('client/help')).toHaveProperty('error', expect.stringMatching(/not allowed in REST/))
    })
  })
})
