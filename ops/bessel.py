"""Modified Bessel functions of the first kind, of orders 0 and 1, plain and scaled by exp(-|x|).

They are computed in float64: for |x| up to 8 by a polynomial in x, beyond by one in 1/x, which
interpolate the functions at 31 and 25 Chebyshev points. The error is below 256 units in the last
place of a float64.
"""

from __future__ import annotations

from collections.abc import Sequence

from passkit import ast
from passkit.ast import Expr
from passkit.graph.node import Entry, Node
from passkit.ops.elementwise_definition import elementwise
from passkit.ops.helpers import make
from passkit.values.dtype import float64

I0E_SMALL = (
    0.20700192122398742,
    -0.11300432688618775,
    0.09451562853960468,
    -0.08904344136334268,
    0.08734341620302581,
    -0.08496338080310535,
    0.07927522504687981,
    -0.06954119793274151,
    0.05677704606169889,
    -0.042985922649988,
    0.03017777454830913,
    -0.01968284910255285,
    0.011960952992520531,
    -0.006791460177548596,
    0.0036133202680290323,
    -0.0018150292977635774,
    0.000867976043742425,
    -0.00037547850754362437,
    0.00013682930591218587,
    -7.798595719753893e-05,
    6.553173795597808e-05,
    5.574868414588572e-06,
    -4.210296995757568e-05,
    -1.325731488665746e-05,
    3.580050918483926e-05,
    6.447290821421531e-06,
    -1.8268575771681724e-05,
    -2.0982998032723703e-06,
    5.612810773234213e-06,
    2.9706185863864035e-07,
    -7.728174809486635e-07,
)
I0E_LARGE = (
    0.40217650944500777,
    0.0033605519836675452,
    0.00013621607448223222,
    1.1143033796884804e-05,
    1.4838428722837242e-06,
    2.9736004819334514e-07,
    8.881936928498312e-08,
    3.932155312317732e-08,
    2.0515308851082798e-08,
    7.589850764186965e-09,
    -3.295528929364386e-10,
    -1.3565952270358373e-08,
    -3.04360991144292e-08,
    7.984057784124582e-09,
    7.111347024572448e-08,
    -4.268659321358726e-09,
    -1.1315443493425448e-07,
    2.391125389938905e-09,
    1.2197201021423346e-07,
    -1.193183503651148e-09,
    -8.393277995960926e-08,
    4.0492031380493597e-10,
    3.3168992717445206e-08,
    -6.46443526101677e-11,
    -5.720633655644283e-09,
)
I1E_SMALL = (
    0.044687709875609154,
    -0.06112433802965766,
    0.06805759990935294,
    -0.0684826062071187,
    0.06376740372594196,
    -0.05528003916975641,
    0.04467457223021042,
    -0.033671356700186166,
    0.02368602333303536,
    -0.015571295546571174,
    0.009583899765237545,
    -0.005534667460947887,
    0.003006159459556018,
    -0.0015383919146870083,
    0.0007427854658166025,
    -0.00034279385600609287,
    0.00015371193254879706,
    -5.759292050440983e-05,
    1.262910529197641e-05,
    -1.5589913382721155e-05,
    2.1592535264766588e-05,
    6.553247394256158e-06,
    -2.0191774726094255e-05,
    -6.4467538088079415e-06,
    1.6112887439498255e-05,
    3.407418262213468e-06,
    -8.29614732684868e-06,
    -1.0923136987032428e-06,
    2.5439601872236495e-06,
    1.5595146725254673e-07,
    -3.504326506968467e-07,
)
I1E_LARGE = (
    0.389398459025872,
    -0.009749577193236254,
    -0.0002192357637615963,
    -1.503854715565127e-05,
    -1.8349138535118497e-06,
    -3.483867305573231e-07,
    -9.993497982609424e-08,
    -4.3114907800390535e-08,
    -2.4214764711251716e-08,
    -8.52700634831729e-09,
    1.2032897923611908e-08,
    1.4455401860233898e-08,
    -1.4942370207173566e-08,
    -8.784305755021622e-09,
    4.5866346769985043e-08,
    5.4444557343098184e-09,
    -8.50015303329101e-08,
    -3.752954113310339e-09,
    9.762032762193851e-08,
    2.188900427014301e-09,
    -6.926339526074208e-08,
    -8.159432265091708e-10,
    2.785330713246074e-08,
    1.378410525308018e-10,
    -4.858304199658191e-09,
)
"""Coefficients of polynomials, lowest power first.

I0E_SMALL and I1E_SMALL are i0e(x) and i1e(x) / x as polynomials in x / 4 - 1, for x from 0 to 8;
I0E_LARGE and I1E_LARGE are sqrt(x) i0e(x) and sqrt(x) i1e(x) as polynomials in 16 / x - 1, beyond.
"""


def _polynomial(t: Expr, coefficients: Sequence[float]) -> Expr:
    """Return the polynomial with ``coefficients``, lowest power first, at t, by Horner's rule."""
    out: Expr = ast.const(coefficients[-1], t.dtype)
    for c in coefficients[-2::-1]:
        out = out * t + c
    return out


def _i0e(x: Expr) -> Expr:
    """Return exp(-|x|) I0(x)."""
    magnitude = ast.abs(x)
    large = _polynomial(16.0 / magnitude - 1.0, I0E_LARGE) / ast.sqrt(magnitude)
    return ast.where(magnitude > 8.0, large, _polynomial(magnitude * 0.25 - 1.0, I0E_SMALL))


def _i1e(x: Expr) -> Expr:
    """Return exp(-|x|) I1(x), which is odd."""
    magnitude = ast.abs(x)
    large = _polynomial(16.0 / magnitude - 1.0, I1E_LARGE) / ast.sqrt(magnitude)
    small = _polynomial(magnitude * 0.25 - 1.0, I1E_SMALL) * x
    return ast.where(magnitude > 8.0, ast.copysign(large, x), small)


def _i0(x: Expr) -> Expr:
    """Return I0(x); NaN at infinity, as in SciPy and TensorFlow."""
    return ast.exp(ast.abs(x)) * _i0e(x)


def _i1(x: Expr) -> Expr:
    """Return I1(x); NaN at infinity, as in SciPy and TensorFlow."""
    return ast.exp(ast.abs(x)) * _i1e(x)


def _i0e_gradient(node: Node, dy: Entry) -> list[Entry]:
    """Return the gradient of x: dy (i1e(x) - sign(x) i0e(x)).

    ``node`` is the forward node; ``dy`` is the gradient of its output.
    """
    x = node.inputs[0]
    return [dy * (make("bessel_i1e", x) - make("sign", x) * node.entries[0])]


def _i1_gradient(node: Node, dy: Entry) -> list[Entry]:
    """Return the gradient of x: dy (i0(x) - i1(x) / x).

    ``node`` is the forward node; ``dy`` is the gradient of its output.
    """
    x = node.inputs[0]
    return [dy * (make("bessel_i0", x) - _divided_by_x(node.entries[0], x))]


def _i1e_gradient(node: Node, dy: Entry) -> list[Entry]:
    """Return the gradient of x: dy (i0e(x) - sign(x) i1e(x) - i1e(x) / x).

    ``node`` is the forward node; ``dy`` is the gradient of its output.
    """
    x, y = node.inputs[0], node.entries[0]
    return [dy * (make("bessel_i0e", x) - y * make("sign", x) - _divided_by_x(y, x))]


def _divided_by_x(y: Entry, x: Entry) -> Entry:
    """Return y / x for y = i1(x) or i1e(x), and its limit 1/2 at 0."""
    zero = make("equal", x, 0.0)
    return make("where", zero, 0.5, y / make("where", zero, 1.0, x))


elementwise(
    name="bessel_i0",
    aliases="i0",
    kinds="f",
    code=_i0,
    compute_dtype=float64,
    cost="expensive",
    gradient=lambda node, dy: [dy * make("bessel_i1", node.inputs[0])],
    doc="the modified Bessel function of order 0",
)
elementwise(
    name="bessel_i1",
    aliases="i1",
    kinds="f",
    code=_i1,
    compute_dtype=float64,
    cost="expensive",
    gradient=_i1_gradient,
    doc="the modified Bessel function of order 1",
)
elementwise(
    name="bessel_i0e",
    aliases="i0e",
    kinds="f",
    code=_i0e,
    compute_dtype=float64,
    cost="expensive",
    gradient=_i0e_gradient,
    doc="exp(-|x|) bessel_i0(x)",
)
elementwise(
    name="bessel_i1e",
    aliases="i1e",
    kinds="f",
    code=_i1e,
    compute_dtype=float64,
    cost="expensive",
    gradient=_i1e_gradient,
    doc="exp(-|x|) bessel_i1(x)",
)
