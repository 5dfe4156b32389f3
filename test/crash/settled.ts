import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'

/**
 * Resolves when a server of this process has read all requests that reached this machine before the call. libuv accepts one
 * connection in each turn of the event loop, so a request on an open connection would overtake requests whose connections
 * still wait. Therefore this function sends two requests, each on a new connection behind all others: when the server
 * accepts the first, it has accepted all earlier connections; when it reads the second, it has read the requests on them.
 * @param url of the server, which has to answer any request.
 */
export async function requestsAreRead(url: string): Promise<void> {
  for (let trip = 0; trip < 2; trip++) {
    const asked = request(`${url}/still-there`, { agent: false }).end()
    const [answer] = (await once(asked, 'response')) as [IncomingMessage]
    await once(answer.resume(), 'end')
  }
}
