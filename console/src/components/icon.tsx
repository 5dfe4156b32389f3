import type { ComponentType, SVGProps } from 'react'

/** Properties of an icon: size in pixels, line width on a 24-pixel canvas, and those of `<svg>`. */
export interface IconProps extends Omit<SVGProps<SVGSVGElement>, 'stroke' | 'children'> {
  readonly size?: number
  readonly stroke?: number
}

/** Makes a component of the inner markup of an icon. Only the modules that `icons.ts` makes use it; pages import `icon:`. */
export function drawn(body: string): ComponentType<IconProps> {
  const inner = { __html: body }
  return ({ size = 24, stroke = 2, color = 'currentColor', ...others }) => (
    <svg
      aria-hidden
      width={size}
      height={size}
      viewBox="0 0 24 24"
      fill="none"
      stroke={color}
      strokeWidth={stroke}
      strokeLinecap="round"
      strokeLinejoin="round"
      // biome-ignore lint/security/noDangerouslySetInnerHtml: markup of a package that is read when the console is built.
      dangerouslySetInnerHTML={inner}
      {...others}
    />
  )
}
