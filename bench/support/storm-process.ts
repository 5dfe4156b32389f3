/** A process that makes storms when it is told to, so that those who measure beside it have a process of their own. */
import { type Storm, stormRate } from './storm.js'

process.on('message', (storm) => {
  void stormRate(storm as Storm).then((rate) => process.send?.(rate))
})
process.on('disconnect', () => process.exit())
process.send?.('ready')
