import classes from './bars.module.css'
import type { Tone } from './status.js'

/** A part of every bar: counts by step. */
export interface BarPart {
  readonly tone: Tone
  readonly counts: readonly number[]
}

interface BarsProps {
  /** What the chart shows, for screen readers. The page must show its numbers elsewhere, too. */
  readonly label: string
  /** Stacked from below; all of the same length. */
  readonly parts: readonly BarPart[]
  /** The tooltip of a step. */
  readonly titleOf: (step: number) => string
  readonly onStep: (step: number) => void
}

/** Lengths in units of the drawing, in which a step is 10 wide. */
const HEIGHT = 100
const STEP = 10
const GAP = 1.5

/** Counts over time as stacked bars. The highest bar fills the height. */
export function Bars({ label, parts, titleOf, onStep }: BarsProps) {
  const [first] = parts
  const steps = first?.counts.length ?? 0
  const totals = Array.from({ length: steps }, (_, step) =>
    parts.reduce((sum, { counts }) => sum + (counts[step] ?? 0), 0),
  )
  const most = Math.max(1, ...totals)
  return (
    <svg
      className={classes.bars}
      viewBox={`0 0 ${steps * STEP} ${HEIGHT}`}
      preserveAspectRatio="none"
      role="img"
      aria-label={label}
    >
      <line className={classes.base} x1={0} x2={steps * STEP} y1={HEIGHT} y2={HEIGHT} />
      {totals.map((total, step) =>
        total === 0 ? null : (
          // biome-ignore lint/suspicious/noArrayIndexKey: a step is its place.
          // biome-ignore lint/a11y/noStaticElementInteractions: for the keyboard, the page has the same links as text.
          <g key={step} className={classes.column} onClick={() => onStep(step)}>
            <title>{titleOf(step)}</title>
            <rect className={classes.hit} x={step * STEP} y={0} width={STEP} height={HEIGHT} />
            {stackOf(parts, step, most).map(({ tone, y, height }) => (
              <rect
                key={`${tone} ${y}`}
                className={classes.bar}
                data-tone={tone}
                x={step * STEP + GAP / 2}
                y={y}
                width={STEP - GAP}
                height={height}
              />
            ))}
          </g>
        ),
      )}
    </svg>
  )
}

/** The rectangles of one bar. Each count above zero is at least 2 high, so that it is visible. */
function stackOf(parts: readonly BarPart[], step: number, most: number) {
  let top = HEIGHT
  return parts.flatMap(({ tone, counts }) => {
    const count = counts[step] ?? 0
    if (count === 0) return []
    const height = Math.max(2, (count / most) * HEIGHT)
    top -= height
    return [{ tone, y: Math.max(0, top), height }]
  })
}
