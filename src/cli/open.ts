import { clientVariablesOfProcess } from '../config/index.js'
import { getConsoleSettings } from '../contract/console/console.js'
import { failedWith } from './errors.js'
import { remote } from './remote/remote.js'
import { openInBrowser } from './system-programs.js'

/** `homeport open`: prints the URL of the console, and opens it when there is a graphical session. */
export const openCommand = remote<{ browser: boolean }>({
  name: 'open',
  summary: 'print the URL of the console, and open it in a browser if this is a graphical session',
  flags: (command) => command.option('--no-browser', 'only print the URL'),
  examples: ['homeport open', 'homeport open --profile prod'],
  run: async ({ api, show, say, isJson }, { browser }) => {
    const settings = await api.call(getConsoleSettings)
    const url = pageOf(settings.api_url)
    show({ url: url.href }, () => `${url.href}\n`)
    if (isJson || !browser || !clientVariablesOfProcess().hasDesktop) return
    if (!(await openInBrowser(url))) say('No browser could be opened.')
  },
})

/** The URL of the console. It must be http or https: a server may name any URL, and the desktop would start any program. */
function pageOf(apiUrl: string): URL {
  const url = URL.canParse(apiUrl) ? new URL(apiUrl) : undefined
  if (url && /^https?:$/.test(url.protocol)) return new URL(`${url.href.replace(/\/+$/, '')}/`)
  throw failedWith('The server names no web address for its console.')
}
