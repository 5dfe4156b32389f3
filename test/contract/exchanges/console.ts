import { CONSOLE_HEADER } from '../../../src/contract/console/session.js'
import { type Answer, call } from '../../support/index.js'
import type { Exchanges, Stage } from './stage.js'

function signIn({ homeport: { apiUrl, credentials } }: Stage): Promise<Answer> {
  const json = { email: credentials.email, api_key: credentials.apiKey }
  return call(`${apiUrl}/v2/console/session`, { method: 'POST', json, headers: { [CONSOLE_HEADER]: '1' } })
}

/** Signs in, then calls with the cookie. */
async function withCookie(stage: Stage, method: string, path: string): Promise<Answer> {
  const cookie = (await signIn(stage)).headers.get('set-cookie')?.split(';')[0] ?? ''
  return call(stage.homeport.apiUrl + path, { method, headers: { cookie, [CONSOLE_HEADER]: '1' } })
}

/** The sessions of the console and its own operations. */
export const consoleExchanges: Exchanges = {
  createConsoleSession: signIn,
  getConsoleSession: (stage) => withCookie(stage, 'GET', '/v2/console/session'),
  endConsoleSession: (stage) => withCookie(stage, 'DELETE', '/v2/console/session'),
  getConsoleSettings: ({ homeport }) => homeport.api('GET', '/v2/console/settings'),
  listDatabaseSummaries: async (stage) => {
    await stage.database()
    return stage.homeport.api('GET', '/v2/console/databases?count=1&search=E')
  },
  getUsage: ({ homeport }) => homeport.api('GET', '/v2/console/usage'),
  getRegionStatus: async (stage) => stage.homeport.api('GET', `/v2/console/regions/${await stage.database()}`),
  getActivity: async (stage) => stage.homeport.api('GET', '/v2/console/activity?period=1d'),
  getOverview: (stage) => withCookie(stage, 'GET', '/v2/console/overview'),
}
