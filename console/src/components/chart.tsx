import '@mantine/charts/styles.css'
import { LineChart } from '@mantine/charts'
import { Box, ColorSwatch, Group, Stack, Text } from '@mantine/core'
import { memo } from 'react'
import { dayOf, timeOfDay } from '../lib/format.js'

/** A series of a chart: values over time. */
export interface Series {
  /** The name in the legend. */
  readonly name: string
  readonly points: readonly { readonly x: string; readonly y: number }[]
}

const NO_BREAK = '\u00a0'
const COLORS = ['harbour.6', 'orange.6', 'grape.5'] as const
const dashed = (index: number): string => (COLORS[index] ?? 'gray.6').replace('.', '-')

interface ChartProps {
  readonly title: string
  readonly series: readonly Series[]
  readonly show: (value: number) => string
  /** Each point is a UTC day, not a moment. */
  readonly byDay?: boolean
}

/** Whether the chart is up to date. Most refreshes of a page bring no new point, and drawing a chart is slow. */
const isDrawn = (before: ChartProps, { title, series }: ChartProps): boolean =>
  before.title === title &&
  before.series.length === series.length &&
  before.series.every(({ points }, index) => points === series[index]?.points)

/** A chart of one measure: its latest value and its course. */
export const SeriesChart = memo(function SeriesChart({ title, series, show, byDay = false }: ChartProps) {
  const rows = rowsOf(series, byDay)
  const latest = series.map(({ name, points }) => `${name} ${show(points.at(-1)?.y ?? 0)}`).join(', ')
  return (
    <Box miw={0}>
      <Stack gap={2} mb={6}>
        <Text size="sm" fw={550}>
          {title}
        </Text>
        <Group gap={10}>
          {series.map(({ name, points }, index) => (
            <Group key={name} gap={5} wrap="nowrap">
              {series.length > 1 ? <ColorSwatch size={8} color={`var(--mantine-color-${dashed(index)})`} /> : null}
              <Text size="xs" c="dimmed" style={{ fontVariantNumeric: 'tabular-nums', whiteSpace: 'nowrap' }}>
                {series.length > 1 ? `${name} ` : ''}
                {show(points.at(-1)?.y ?? 0)}
              </Text>
            </Group>
          ))}
        </Group>
      </Stack>
      <Box role="img" aria-label={`${title}, now ${latest}`}>
        <LineChart
          h={130}
          data={rows}
          dataKey="time"
          series={series.map(({ name }, index) => ({ name, color: COLORS[index] ?? 'gray.6' }))}
          valueFormatter={show}
          withDots={byDay}
          // A curve between two days would suggest values that do not exist.
          curveType={byDay ? 'linear' : 'monotone'}
          strokeWidth={2}
          gridAxis="x"
          tickLine="none"
          yAxisProps={{
            width: 72,
            tickCount: 3,
            tickFormatter: (value: number) => show(value).replaceAll(' ', NO_BREAK),
          }}
          xAxisProps={{ minTickGap: 40 }}
          lineChartProps={{ accessibilityLayer: false }}
          lineProps={{ isAnimationActive: false }}
        />
      </Box>
    </Box>
  )
}, isDrawn)

function rowsOf(series: readonly Series[], byDay: boolean): Record<string, string | number>[] {
  const [first] = series
  const isLong = spanMs(first?.points ?? []) > 86_400_000
  return (first?.points ?? []).map(({ x }, index) => ({
    time: timeText(x, byDay, isLong),
    ...Object.fromEntries(series.map(({ name, points }) => [name, points[index]?.y ?? 0])),
  }))
}

/** Parses a time such as `2025-08-31 15:12:00 +0000 UTC`, the format of the server. */
const timeOf = (x: string): Date => new Date(`${x.slice(0, 10)}T${x.slice(11, 19) || '00:00:00'}Z`)

const spanMs = (points: readonly { readonly x: string }[]): number =>
  points.length < 2 ? 0 : timeOf(points.at(-1)?.x ?? '').getTime() - timeOf(points[0]?.x ?? '').getTime()

function timeText(x: string, isDay: boolean, isLong: boolean): string {
  const time = timeOf(x)
  if (Number.isNaN(time.getTime())) return x
  if (isDay) return dayOf(time, 'UTC')
  return isLong ? dayOf(time) : timeOfDay(time)
}
