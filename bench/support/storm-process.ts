/** Makes storms of connections on request, in a separate process, so that the measuring process is not slowed down. */
import { type Storm, stormRate } from './storm.js'

process.on('message', (storm) => {
  void stormRate(storm as Storm).then((rate) => process.send?.(rate))
})
process.on('disconnect', () => process.exit())
process.send?.('ready')
