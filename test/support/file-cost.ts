import { appendFileSync } from 'node:fs'

const COST = new URL('../../scripts/lib/cost.mjs', import.meta.url).href
const { processorSeconds }: { processorSeconds: () => number | undefined } = await import(COST)

/**
 * Begins to count the processor time of a test file: that of this process, which runs one file after the other, and that of
 * its children that end meanwhile. Programs that other processes start for the file are not counted, such as PostgreSQL and
 * the renderers of a browser.
 * @param report the file to which a line is added: `{"name": <path>, "processor": <seconds>}`. Default: counts nothing.
 * @returns the function that ends the count.
 */
export function noteCost(report: string | undefined): (name: string | undefined) => void {
  const begun = report === undefined ? undefined : processorSeconds()
  return (name) => {
    const ended = report === undefined ? undefined : processorSeconds()
    if (report === undefined || begun === undefined || ended === undefined || name === undefined) return
    appendFileSync(report, `${JSON.stringify({ name, processor: ended - begun })}\n`)
  }
}
