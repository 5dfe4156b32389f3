import type { Exchange, Exchanges, Stage } from './stage.js'

const CHANNELS = '/v2/alerts/channels'
const SILENCES = '/v2/alerts/silences'

const addChannel = ({ homeport, sink }: Stage) =>
  homeport.api('POST', CHANNELS, { name: 'ops', url: `${sink.url}/alerts`, kinds: ['disk_full'] })

/** Uses a channel and deletes it again. */
const withChannel =
  (use: (stage: Stage, path: string) => ReturnType<Exchange>): Exchange =>
  async (stage) => {
    const { channel_id } = (await addChannel(stage)).body as { channel_id: string }
    const answer = await use(stage, `${CHANNELS}/${channel_id}`)
    await stage.homeport.api('DELETE', `${CHANNELS}/${channel_id}`)
    return answer
  }

const addSilence = ({ homeport }: Stage) =>
  homeport.api('POST', SILENCES, { kind: 'disk_full', until: Math.floor(Date.now() / 1000) + 60, reason: 'a test' })

/** Alerts: channels, rules, silences, history. */
export const alertExchanges: Exchanges = {
  createAlertChannel: addChannel,
  listAlertChannels: withChannel(({ homeport }) => homeport.api('GET', CHANNELS)),
  changeAlertChannel: withChannel(({ homeport }, path) => homeport.api('PATCH', path, { format: 'slack', kinds: [] })),
  testAlertChannel: withChannel(({ homeport }, path) => homeport.api('POST', `${path}/test`)),
  deleteAlertChannel: withChannel(({ homeport }, path) => homeport.api('DELETE', path)),
  listAlertRules: ({ homeport }) => homeport.api('GET', '/v2/alerts/rules'),
  changeAlertRule: ({ homeport }) => homeport.api('PATCH', '/v2/alerts/rules/budget', { threshold: null }),
  createSilence: addSilence,
  listSilences: ({ homeport }) => homeport.api('GET', SILENCES),
  deleteSilence: async (stage) => {
    const { silence_id } = (await addSilence(stage)).body as { silence_id: string }
    return stage.homeport.api('DELETE', `${SILENCES}/${silence_id}`)
  },
  listAlertHistory: ({ homeport }) => homeport.api('GET', '/v2/alerts/history?count=10'),
}
