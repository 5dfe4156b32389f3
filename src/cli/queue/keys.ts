import { getSigningKeys, rotateSigningKeys } from '../../contract/queue/messages.js'
import type { Io } from '../io.js'
import { group, remote } from '../remote/remote.js'
import { renderFacts } from '../terminal/table.js'

interface Keys {
  readonly current: string
  readonly next: string
}

const facts = (io: Io, { current, next }: Keys): string =>
  renderFacts(io, [
    ['current', current],
    ['next', next],
  ])

const showCommand = remote({
  name: 'show',
  summary: 'print the signing keys of deliveries; a receiver accepts both',
  examples: ['homeport queue keys show --json'],
  run: async ({ api, io, show }) => {
    const keys = await api.call(getSigningKeys)
    show(keys, () => facts(io, keys))
  },
})

const rotateCommand = remote({
  name: 'rotate',
  summary: 'make the next key the current key, and create a new next key',
  isDestructive: true,
  examples: ['homeport queue keys rotate --yes'],
  run: async ({ api, io, show, confirm }) => {
    await confirm('Rotate the signing keys? A receiver that knows only the current key will refuse all deliveries.')
    const keys = await api.call(rotateSigningKeys)
    show(keys, () => facts(io, keys))
  },
})

/** `homeport queue keys`. */
export const signingKeysCommand = group('keys', 'the signing keys of deliveries', [showCommand, rotateCommand])
